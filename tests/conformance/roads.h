// SPDX-License-Identifier: Apache-2.0
// roads.h — what is done with one program of the conformance suite: the roads it is sent along.
//
//   print      read, verify, print, read again: the same graph, and the same text the second time
//   write      serialise and read back: the same graph; from there to text and back: the same bytes
//   evaluator  every entry function runs on the plain evaluator; its checks hold
//   chip       the same, compiled and run on the virtual core; results also agree with the
//   evaluator's bytecode   the serialised form beside a text file gives the same graph, or is
//   refused when the
//              text's run line says so
//
// Entry functions: main; without one, the public functions without arguments; without those, all
// public ones. An entry that takes arguments gets made-up ones.
#ifndef OTRN_TESTS_ROADS_H
#define OTRN_TESTS_ROADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Road { ROAD_PRINT, ROAD_WRITE, ROAD_EVAL, ROAD_CHIP, ROAD_BYTECODE, ROAD_COUNT } Road;
extern const char *const road_names[ROAD_COUNT];

typedef enum State {
    STATE_RUNNING, // not over: what a crash leaves behind
    STATE_PASSED,
    STATE_FAILED,
    STATE_UNSUPPORTED, // refused with UNSUPPORTED
    STATE_ABSENT,      // the road does not apply to this program
    STATE_DISABLED,    // failed, and upstream does not run it either
    STATE_COUNT
} State;

typedef struct Outcome {
    int state;
    uint32_t line; // in the program's file, 0 when unknown
    double seconds;
    char reason[400]; // one line, "CODE: text"
} Outcome;

typedef struct Program {
    const char *path;  // of the file
    const char *text;  // all bytes of the file
    size_t begin, end; // this program's part of it
    uint32_t line;     // first line of the part, from 1
    bool has_bytecode; // a serialised form lies beside it
} Program;

// Runs in a process of its own: it may crash, hang or run out of memory.
void road_run(Road road, const Program *p, Outcome *out);

#endif
