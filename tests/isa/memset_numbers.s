# memset: a number with a point becomes bits of dst's type, as do those of range_select; bits may be given in full.
.output y f32[2,8]
.sbuf a f32[2,8]
.sbuf h bf16[2,8]
.sbuf lo f32[2,1]
.sbuf hi f32[2,1]
.sync auto
memset h imm=-1.5
tensor_copy a, h
memset a[:, 1:3] imm=0xbf800000
memset a[:, 4] imm=0.25
memset lo imm=0.0
memset hi imm=6.0
range_select a, a op0=greater_equal a=lo op1=less b=hi limit=-7.5
dma y, a
# expect y -1.5 -1 -1 -1.5 0.25 -1.5 -7.5 -7.5 -1.5 -1 -1 -1.5 0.25 -1.5 -7.5 -7.5
