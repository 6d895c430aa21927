# memset, tensor_copy: bits of imm, then converted.
.output y i32[2,4]
.sbuf a f32[2,4]
.sbuf b i32[2,4]
.sync auto
memset a imm=1077936128
memset a[:, ::2] imm=1082130432
tensor_copy b, a
dma y, b
# expect y 4 3 4 3 4 3 4 3
