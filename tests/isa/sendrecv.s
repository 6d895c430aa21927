# sendrecv: two cores swap tiles; each adds what it got to what it had and writes its half of the result.
.cores 2
.input x f32[2,4,8]
.output y f32[2,4,8]
.sbuf a f32[4,8]
.sbuf b f32[4,8]
.sync auto
dma a, x[core]
sync: sendrecv b, a imm=1-core value=3
vector: tensor_scalar a, a op0=multiply a=10.0
vector: tensor_tensor b, a, b op0=add
dma y[core], b
# init x 1*32 2*32
# expect y 12*32 21*32
