# SPDX-License-Identifier: Apache-2.0
# act_chain.s — COUNT scalar-engine instructions of N elements, each reading what the one before wrote.
.name "act_chain"
.param COUNT=64
.param N=1
.sbuf t f32[128, N]
scalar: activation t, t fn=identity a=1.0
loop i = 0, COUNT-1 {
    scalar: activation t, t fn=identity a=1.0
}
