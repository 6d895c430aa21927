// SPDX-License-Identifier: Apache-2.0
// shell.c — completions for bash, zsh and fish, and manual pages, printed from the tables of commands and options.
//
// `make install` puts them where shells and man look. What a value may be comes from the option's row: words between
// '|' are offered, one in capitals (FILE, DIR) means a path.
#include <ctype.h>
#include <string.h>

#include "mach/instance.h"
#include "tools/tools.h"

static const char *dash(const OptRow *o) { return o->name[1] ? "--" : "-"; }
// Can it stand alone, as --json does?
static bool is_switch(const OptRow *o) { return o->kind == 'B' || strstr(o->values, "off|on"); }

// The words of "trn1|trn2|FILE" that can be typed, with a blank behind each; machines are those of the table.
static const char *value_words(Tool *t, int id) {
    Buf out = {.arena = t->arena};
    if (id == OPT_INSTANCE) {
        Instance *rows;
        uint32_t n = instances_load(t->ctx, t->arena, t->opt.val[OPT_CHIPS], &rows);
        for (uint32_t i = 0; i < n; i++)
            buf_printf(&out, "%s ", rows[i].name);
    }
    for (const char *at = opt_rows[id].values; strchr(opt_rows[id].values, '|') && *at;) {
        size_t n = strcspn(at, "|");
        if (!isupper((unsigned char)*at))
            buf_printf(&out, "%.*s ", (int)n, at);
        at += n + (at[n] == '|');
    }
    buf_printf(&out, "%s", "");
    return out.n ? (const char *)out.at : "";
}

// Does it take a path?
static bool takes_path(const OptRow *o) { return strstr(o->values, "FILE") || strstr(o->values, "DIR"); }

// The words a command itself takes, from its usage ("ls|why FILE|verify"); "" when it takes programs.
static const char *own_words(Tool *t, const ToolRow *row) {
    Buf out = {.arena = t->arena};
    const char *at = row->usage + (row->usage[0] == '[');
    if (!islower((unsigned char)*at))
        return "";
    while (*at && *at != ']') {
        size_t word = strcspn(at, "| ]["), n = strcspn(at, "|");
        buf_printf(&out, "%.*s ", (int)word, at);
        at += n + (at[n] == '|');
    }
    return (const char *)out.at;
}

// For text inside single quotes of a shell; fish and zsh take the same.
static const char *quoted(Tool *t, const char *text, const char *more) {
    Buf out = {.arena = t->arena};
    for (; *text; text++) {
        if (*text == '\'')
            buf_printf(&out, "'\\''");
        else if (strchr(more, *text))
            buf_printf(&out, "\\%c", *text);
        else
            buf_printf(&out, "%c", *text);
    }
    return out.n ? (const char *)out.at : "";
}

void shell_bash(Tool *t) {
    const ToolRow *row;
    printf("# bash completion for otrn %s, printed by `otrn info bash`\n"
           "_otrn() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} option= words=\n"
           "    if [ \"$cur\" = = ]; then option=$prev cur=; # bash cuts --name=value at the sign\n"
           "    elif [ \"$prev\" = = ]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
           "    case $option in\n",
           OTRN_RELEASE);
    for (int i = 0; i < OPT_COUNT; i++)
        if (*opt_rows[i].cmds != '-' && *value_words(t, i))
            printf("    %s%s) words='%s' ;;\n", dash(&opt_rows[i]), opt_rows[i].name, value_words(t, i));
    printf("    esac\n"
           "    if [ -n \"$option\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then words='");
    for (size_t r = 0; (row = tool_row(r)); r++)
        printf("%s ", row->name);
    printf("'\n    else case ${COMP_WORDS[1]} in\n");
    for (size_t r = 0; (row = tool_row(r)); r++) {
        printf("        %s) words='%s", row->name, own_words(t, row));
        for (int i = 0; i < OPT_COUNT; i++)
            if (tool_takes(row, &opt_rows[i]))
                printf("%s%s%s ", dash(&opt_rows[i]), opt_rows[i].name, is_switch(&opt_rows[i]) || !opt_rows[i].name[1] ? "" : "=");
        printf("--help' ;;\n");
    }
    printf("        esac\n    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "    case $cur in -*) ;; *) [ \"$COMP_CWORD\" = 1 ] || COMPREPLY+=($(compgen -f -- \"$cur\")) ;; esac\n"
           "    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
           "}\n"
           "complete -o filenames -F _otrn otrn\n");
}

void shell_zsh(Tool *t) {
    const ToolRow *row;
    printf("#compdef otrn\n# zsh completion for otrn %s, printed by `otrn info zsh`\n"
           "_otrn() {\n    local -a commands=(\n",
           OTRN_RELEASE);
    for (size_t r = 0; (row = tool_row(r)); r++)
        printf("        '%s:%s'\n", row->name, quoted(t, row->help, ":"));
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
           "    case $words[2] in\n");
    for (size_t r = 0; (row = tool_row(r)); r++) {
        printf("    %s) _arguments -S \\\n        '1: :(%s)' \\\n", row->name, row->name);
        for (int i = 0; i < OPT_COUNT; i++) {
            const OptRow *o = &opt_rows[i];
            if (!tool_takes(row, o))
                continue;
            const char *words = value_words(t, i);
            printf("        '%s%s%s[%s]", dash(o), o->name, is_switch(o) ? "" : o->name[1] ? "=" : "", quoted(t, o->help, "[]:"));
            if (!is_switch(o))
                printf(":%s:%s%s%s", o->name, *words ? "(" : takes_path(o) ? "_files" : " ", words, *words ? ")" : "");
            printf("' \\\n");
        }
        printf("        '--help[show the options]' '*: :%s%s%s' ;;\n", *own_words(t, row) ? "(" : "_files",
               own_words(t, row), *own_words(t, row) ? ")" : "");
    }
    printf("    esac\n}\n_otrn \"$@\"\n");
}

void shell_fish(Tool *t) {
    const ToolRow *row;
    printf("# fish completion for otrn %s, printed by `otrn info fish`\n", OTRN_RELEASE);
    for (size_t r = 0; (row = tool_row(r)); r++)
        printf("complete -c otrn -n __fish_use_subcommand -f -a %s -d '%s'\n", row->name, quoted(t, row->help, "\\"));
    for (size_t r = 0; (row = tool_row(r)); r++) {
        if (*own_words(t, row))
            printf("complete -c otrn -n '__fish_seen_subcommand_from %s' -a '%s'\n", row->name, own_words(t, row));
        for (int i = 0; i < OPT_COUNT; i++) {
            const OptRow *o = &opt_rows[i];
            if (!tool_takes(row, o))
                continue;
            const char *words = value_words(t, i);
            printf("complete -c otrn -n '__fish_seen_subcommand_from %s' -%c %s%s", row->name, o->name[1] ? 'l' : 's', o->name,
                   is_switch(o) ? "" : takes_path(o) ? " -r" : " -x");
            if (*words)
                printf(" -a '%s'", words);
            printf(" -d '%s'\n", quoted(t, o->help, "\\"));
        }
    }
}

// --- manual pages ----------------------------------------------------------------------------------

// Text for roff, where a backslash, a minus sign and a line that begins with a dot mean something else.
static const char *roff(Tool *t, const char *text) {
    Buf out = {.arena = t->arena};
    if (*text == '.' || *text == '\'')
        buf_printf(&out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            buf_printf(&out, "\\e");
        else if (*text == '-')
            buf_printf(&out, "\\-");
        else if (!strncmp(text, "…", strlen("…"))) // formatters that know only Latin letters stumble over it
            buf_printf(&out, "..."), text += strlen("…") - 1;
        else
            buf_printf(&out, "%c", *text);
    }
    return out.n ? (const char *)out.at : "";
}

static void man_head(const char *name) {
    printf(".\\\" printed by `otrn info man`\n.TH %s 1 \"\" \"opentrn %s\"\n.SH NAME\n", name, OTRN_RELEASE);
}

// "A|B" as "A, B", which may be broken into lines.
static const char *variables(Tool *t, const char *env) {
    Buf b = {.arena = t->arena};
    for (; *env; env++)
        if (*env == '|')
            buf_printf(&b, ", ");
        else
            buf_printf(&b, "%c", *env);
    buf_printf(&b, "%c", 0);
    return roff(t, (const char *)b.at);
}

static void man_option(Tool *t, const OptRow *o) {
    printf(".TP\n.B %s%s", roff(t, dash(o)), roff(t, o->name));
    if (!is_switch(o))
        printf("%s%s", o->name[1] ? "=" : " ", roff(t, o->values));
    printf("\n%s", roff(t, o->help));
    if (*o->dflt)
        printf(" [%s]", roff(t, o->dflt));
    printf("\n");
    if (*o->env)
        printf("(\\fB%s\\fR)\n", variables(t, o->env));
}

static void man_command(Tool *t, const ToolRow *row) {
    man_head(arena_printf(t->arena, "otrn-%s", row->name));
    printf("otrn\\-%s \\- %s\n.SH SYNOPSIS\n.B otrn %s\n%s\n", roff(t, row->name), roff(t, row->help), roff(t, row->name),
           roff(t, row->usage));
    bool any = false;
    for (int i = 0; i < OPT_COUNT; i++)
        any |= tool_takes(row, &opt_rows[i]);
    if (any)
        printf(".SH OPTIONS\nA value in brackets is the default, a name in parentheses the variable that sets it too.\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (tool_takes(row, &opt_rows[i]))
            man_option(t, &opt_rows[i]);
    printf(".SH SEE ALSO\n.BR otrn (1)\n");
}

static void man_overview(Tool *t) {
    const ToolRow *row;
    man_head("otrn");
    printf("otrn \\- an open Trainium: compile, run and price programs on a virtual NeuronCore\n"
           ".SH SYNOPSIS\n.B otrn\n.I COMMAND\n\\&...\n"
           ".SH DESCRIPTION\nA program is StableHLO text or bytecode, told apart by content; a kernel is assembly (.s).\n"
           ".SH COMMANDS\n");
    for (size_t r = 0; (row = tool_row(r)); r++)
        printf(".TP\n.BR otrn\\-%s (1)\n%s\n", roff(t, row->name), roff(t, row->help));
    printf(".SH ENVIRONMENT\nVariables that no command has an option for; the others stand with their commands.\n");
    for (int i = 0; i < OPT_COUNT; i++)
        if (*opt_rows[i].cmds == '-')
            printf(".TP\n.B %s\n%s%s%s%s\n", variables(t, opt_rows[i].env), roff(t, opt_rows[i].help),
                   *opt_rows[i].dflt ? " [" : "", roff(t, opt_rows[i].dflt), *opt_rows[i].dflt ? "]" : "");
    printf(".SH EXIT STATUS\n0 fine, 1 the input or the run is at fault, 2 wrong usage;\n.BR otrn\\-check (1)\nhas more.\n");
}

void shell_man(Tool *t) {
    const ToolRow *row;
    if (t->words.n < 2) {
        man_overview(t);
        return;
    }
    for (size_t r = 0; (row = tool_row(r)); r++)
        if (!strcmp(row->name, t->words.at[1])) {
            man_command(t, row);
            return;
        }
    ctx_hint(t->ctx, "`otrn info commands` lists them");
    ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "info man: there is no command '%s'", t->words.at[1]);
}
