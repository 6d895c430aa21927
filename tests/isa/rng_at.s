# rng_at: draws of a state by number (src/base/draw.h, computed by another program), the low bits for narrow types, flags; either engine.
.target "trn2"
.input s ui32[1,4]
.output a ui32[1,8]
.output b ui8[1,8]
.output c ui8[1,8]
.output d ui8[1,8]
.sbuf ss ui32[1,4] at 0:0
.sbuf sa ui32[1,8] at 0:64
.sbuf sb ui8[1,8] at 0:128
.sbuf sc ui8[1,8] at 0:192
.sbuf sd ui8[1,8] at 0:256
.sync auto
dma ss, s
gpsimd: rng_at dst=sbuf[0:64] dtype=ui32 d1=1 src=sbuf[0:0] stype=ui32 imm=5 t0=100 t1=3 n0=1 n1=8
vector: rng_at dst=sbuf[0:128] dtype=ui8 d1=1 src=sbuf[0:0] stype=ui32 imm=5 t1=3 n0=1 n1=8
gpsimd: rng_at dst=sbuf[0:192] dtype=ui8 d1=1 src=sbuf[0:0] stype=ui32 op0=less value=8388608 imm=5 t1=3 n0=1 n1=8
vector: rng_at dst=sbuf[0:256] dtype=ui8 d1=4 d2=1 src=sbuf[0:0] stype=ui32 op0=greater_equal value=8388608 imm=5 t1=12 t2=3 n0=1 n1=2 n2=4
dma a, sa
dma b, sb
dma c, sc
dma d, sd
# init s 1 2 3 4
# expect a 296344865 3898360577 368755946 4050550401 182686091 2412181406 3802332459 2116927829
# expect b 33 1 234 129 139 158 43 85
# expect c 1 0 1 0 1 0 0 1
# expect d 0 1 0 1 0 1 1 0
