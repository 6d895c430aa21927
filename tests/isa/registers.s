# reg_load, reg_move, reg_alu, reg_store, branch, jump: y = 3 * x + 5, then counted down to 0.
.input x i32[1]
.output y i32[2]
reg_load reg=r1 src=arg0[0] stype=i32
reg_alu reg=r1 op0=multiply areg=r1 value=3
reg_alu reg=r1 op0=add areg=r1 value=5
reg_store dst=result0[0] dtype=i32 reg=r1
again: reg_alu reg=r1 op0=subtract areg=r1 value=1
branch imm=again op0=greater reg=r1 value=0
reg_move reg=r2 breg=r1
reg_store dst=result0[4] dtype=i32 reg=r2
jump imm=end
nop
end: nop
# init x 7
# expect y 26 0
