# activation: every function at -1 and 2.
.input x f32[1,2]
.input p f32[1,2]
.output y f32[24,2]
.output q f32[3,2]
.sbuf sx f32[1,2]
.sbuf sp f32[1,2]
.sbuf st f32[1,2]
.sync auto
dma sx, x
dma sp, p
activation st, sx fn=copy
dma y[0,:], st queue=1
activation st, sx fn=identity
dma y[1,:], st queue=1
activation st, sx fn=square
dma y[2,:], st queue=1
activation st, sx fn=relu
dma y[3,:], st queue=1
activation st, sx fn=prelu
dma y[4,:], st queue=1
activation st, sx fn=sign
dma y[5,:], st queue=1
activation st, sx fn=abs
dma y[6,:], st queue=1
activation st, sx fn=exp
dma y[7,:], st queue=1
activation st, sx fn=softplus
dma y[8,:], st queue=1
activation st, sx fn=sigmoid
dma y[9,:], st queue=1
activation st, sx fn=tanh
dma y[10,:], st queue=1
activation st, sx fn=silu
dma y[11,:], st queue=1
activation st, sx fn=silu_dx
dma y[12,:], st queue=1
activation st, sx fn=mish
dma y[13,:], st queue=1
activation st, sx fn=gelu
dma y[14,:], st queue=1
activation st, sx fn=gelu_dx
dma y[15,:], st queue=1
activation st, sx fn=gelu_apprx_tanh
dma y[16,:], st queue=1
activation st, sx fn=gelu_apprx_sigmoid
dma y[17,:], st queue=1
activation st, sx fn=gelu_apprx_sigmoid_dx
dma y[18,:], st queue=1
activation st, sx fn=erf
dma y[19,:], st queue=1
activation st, sx fn=erf_dx
dma y[20,:], st queue=1
activation st, sx fn=sin
dma y[21,:], st queue=1
activation st, sx fn=arctan
dma y[22,:], st queue=1
activation st, sx fn=reciprocal
dma y[23,:], st queue=1
activation st, sp fn=log
dma q[0,:], st queue=1
activation st, sp fn=sqrt
dma q[1,:], st queue=1
activation st, sp fn=rsqrt
dma q[2,:], st queue=1
# init x -1 2
# init p 1 4
# expect y -1 2 -1 2 1 4 0 2 -0 2 -1 1 1 2 0.367879441 7.3890561 0.313261688 2.12692801 0.268941421 0.880797078 -0.761594156 0.96402758 -0.268941421 1.76159416 0.0723294881 1.09078425 -0.303401461 1.94395896 -0.158655254 1.95449974 -0.0833154706 1.0852318 -0.158808009 1.95459769 -0.154204234 1.93565862 -0.0677796066 1.07381535 -0.842700793 0.995322265 0.415107497 0.0206669854 -0.841470985 0.909297427 -0.785398163 1.10714872 -1 0.5 tol=2e-6
# expect q 0 1.38629436 1 2 1 0.5 tol=1e-6
