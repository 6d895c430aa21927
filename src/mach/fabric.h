// SPDX-License-Identifier: Apache-2.0
// fabric.h — what a collective takes, by where its devices are.
//
// Cores of a chip; chips of a machine on a torus or a switch; machines joined by links of their own (an UltraServer); the network.
// Groups of one collective run at the same time: those that leave a chip share its links, those that leave a machine its network.
#ifndef OTRN_MACH_FABRIC_H
#define OTRN_MACH_FABRIC_H

#include "isa/kern.h"
#include "mach/chipfile.h"

// Where a collective's bytes go: between cores of a chip, chips of a machine, machines joined by links, machines on the network.
typedef enum LinkPlace { LINK_CHIP, LINK_MACHINE, LINK_JOINED, LINK_NETWORK, LINK_COUNT } LinkPlace;
extern const char *const link_place_names[LINK_COUNT]; // "chip", …

// How it goes: cores of one chip by themselves, everybody to everybody, halving and doubling, around; the last three also inside
// machines and then between them.
typedef enum FabricWay {
    FABRIC_CHIP, FABRIC_MESH, FABRIC_HALVING, FABRIC_RING, FABRIC_MESH_STAGED, FABRIC_HALVING_STAGED, FABRIC_RING_STAGED, FABRIC_WAYS
} FabricWay;
extern const char *const fabric_way_names[FABRIC_WAYS];

typedef struct Wire {
    double ns, at[LINK_COUNT]; // all of it; of that, what bytes take
    FabricWay way;             // the quickest for its size
    LinkPlace reach;           // the farthest it goes
} Wire;

Wire fabric_price(const ChipFile *c, const Kern *k, const KWork *w);

#endif
