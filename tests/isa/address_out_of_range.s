# an address from a loaded register is checked when it is used.
.input x i32[1]
.output y i32[4]
reg_load reg=r1 src=arg0[0] stype=i32
reg_store dst=result0[0+r1*4] dtype=i32 reg=r1
# init x 4
# error dst reaches outside its segment
