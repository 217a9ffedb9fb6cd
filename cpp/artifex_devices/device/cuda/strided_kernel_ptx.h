// SPDX-License-Identifier: Apache-2.0
#pragma once

// strided_kernel.cu, compiled by tools/make_kernels.sh.
namespace artifex_devices::cuda {

inline constexpr char kStridedKernelPtx[] = R"ptx(.version 7.0
.target sm_50
.address_size 64
.visible .entry strided_copy_1(
.param .align 8 .b8 strided_copy_1_param_0[2944]
)
{
.reg .pred 	%p<7>;
.reg .b16 	%rs<2>;
.reg .b32 	%r<48>;
.reg .b64 	%rd<66>;
mov.b64 	%rd18, strided_copy_1_param_0;
mov.u64 	%rd19, %rd18;
mov.u32 	%r20, %ctaid.y;
mul.wide.u32 	%rd20, %r20, 184;
add.s64 	%rd1, %rd19, %rd20;
mov.u32 	%r22, %ntid.x;
mov.u32 	%r23, %ctaid.x;
mov.u32 	%r24, %tid.x;
mad.lo.s32 	%r40, %r23, %r22, %r24;
ld.param.u32 	%r3, [%rd1+16];
setp.ge.u32 	%p1, %r40, %r3;
@%p1 bra 	$L__BB0_9;
mov.u32 	%r21, %nctaid.x;
mul.lo.s32 	%r1, %r21, %r22;
ld.param.u32 	%r4, [%rd1+20];
ld.param.u64 	%rd2, [%rd1+56];
ld.param.u64 	%rd3, [%rd1+120];
ld.param.u64 	%rd4, [%rd1+8];
ld.param.u64 	%rd5, [%rd1];
add.s32 	%r25, %r4, -1;
and.b32  	%r5, %r25, 1;
and.b32  	%r6, %r25, -2;
setp.lt.s32 	%p2, %r4, 2;
mov.u64 	%rd21, 0;
setp.eq.s32 	%p3, %r4, 2;
setp.eq.s32 	%p5, %r5, 0;
bra.uni 	$L__BB0_2;
$L__BB0_8:
cvt.u64.u32 	%rd51, %r46;
mul.lo.s64 	%rd52, %rd2, %rd51;
add.s64 	%rd53, %rd52, %rd65;
mul.lo.s64 	%rd54, %rd3, %rd51;
add.s64 	%rd55, %rd54, %rd64;
add.s64 	%rd56, %rd55, %rd4;
ld.global.u8 	%rs1, [%rd56];
add.s64 	%rd57, %rd53, %rd5;
st.global.u8 	[%rd57], %rs1;
add.s32 	%r40, %r40, %r1;
setp.lt.u32 	%p6, %r40, %r3;
@%p6 bra 	$L__BB0_2;
bra.uni 	$L__BB0_9;
$L__BB0_2:
mov.u64 	%rd65, %rd21;
mov.u64 	%rd64, %rd21;
mov.u32 	%r46, %r40;
@%p2 bra 	$L__BB0_8;
mov.u64 	%rd64, 0;
mov.b32 	%r47, 2;
mov.u32 	%r46, %r40;
mov.u64 	%rd65, %rd64;
@%p3 bra 	$L__BB0_6;
mov.u64 	%rd64, 0;
mov.u32 	%r45, %r6;
mov.u32 	%r46, %r40;
mov.u32 	%r47, %r4;
mov.u64 	%rd65, %rd64;
$L__BB0_5:
add.s32 	%r28, %r47, -1;
mul.wide.u32 	%rd25, %r28, 4;
add.s64 	%rd26, %rd1, %rd25;
ld.param.u32 	%r29, [%rd26+24];
div.u32 	%r30, %r46, %r29;
mul.lo.s32 	%r31, %r30, %r29;
sub.s32 	%r32, %r46, %r31;
cvt.u64.u32 	%rd27, %r32;
add.s64 	%rd28, %rd26, %rd25;
ld.param.u64 	%rd29, [%rd28+56];
mul.lo.s64 	%rd30, %rd29, %rd27;
add.s64 	%rd31, %rd30, %rd65;
ld.param.u64 	%rd32, [%rd28+120];
mul.lo.s64 	%rd33, %rd32, %rd27;
add.s64 	%rd34, %rd33, %rd64;
add.s32 	%r47, %r47, -2;
mul.wide.u32 	%rd35, %r47, 4;
add.s64 	%rd36, %rd1, %rd35;
ld.param.u32 	%r33, [%rd36+24];
div.u32 	%r46, %r30, %r33;
mul.lo.s32 	%r34, %r46, %r33;
sub.s32 	%r35, %r30, %r34;
cvt.u64.u32 	%rd37, %r35;
add.s64 	%rd38, %rd36, %rd35;
ld.param.u64 	%rd39, [%rd38+56];
mul.lo.s64 	%rd40, %rd39, %rd37;
add.s64 	%rd65, %rd40, %rd31;
ld.param.u64 	%rd41, [%rd38+120];
mul.lo.s64 	%rd42, %rd41, %rd37;
add.s64 	%rd64, %rd42, %rd34;
add.s32 	%r45, %r45, -2;
setp.eq.s32 	%p4, %r45, 0;
@%p4 bra 	$L__BB0_6;
bra.uni 	$L__BB0_5;
$L__BB0_6:
@%p5 bra 	$L__BB0_8;
add.s32 	%r36, %r47, -1;
mul.wide.u32 	%rd43, %r36, 4;
add.s64 	%rd44, %rd1, %rd43;
ld.param.u32 	%r37, [%rd44+24];
div.u32 	%r11, %r46, %r37;
mul.lo.s32 	%r38, %r11, %r37;
sub.s32 	%r39, %r46, %r38;
cvt.u64.u32 	%rd45, %r39;
add.s64 	%rd46, %rd44, %rd43;
ld.param.u64 	%rd47, [%rd46+56];
mul.lo.s64 	%rd48, %rd47, %rd45;
add.s64 	%rd65, %rd48, %rd65;
ld.param.u64 	%rd49, [%rd46+120];
mul.lo.s64 	%rd50, %rd49, %rd45;
add.s64 	%rd64, %rd50, %rd64;
mov.u32 	%r46, %r11;
bra.uni 	$L__BB0_8;
$L__BB0_9:
ret;
}
.visible .entry strided_copy_2(
.param .align 8 .b8 strided_copy_2_param_0[2944]
)
{
.reg .pred 	%p<7>;
.reg .b16 	%rs<2>;
.reg .b32 	%r<48>;
.reg .b64 	%rd<66>;
mov.b64 	%rd18, strided_copy_2_param_0;
mov.u64 	%rd19, %rd18;
mov.u32 	%r20, %ctaid.y;
mul.wide.u32 	%rd20, %r20, 184;
add.s64 	%rd1, %rd19, %rd20;
mov.u32 	%r22, %ntid.x;
mov.u32 	%r23, %ctaid.x;
mov.u32 	%r24, %tid.x;
mad.lo.s32 	%r40, %r23, %r22, %r24;
ld.param.u32 	%r3, [%rd1+16];
setp.ge.u32 	%p1, %r40, %r3;
@%p1 bra 	$L__BB1_9;
mov.u32 	%r21, %nctaid.x;
mul.lo.s32 	%r1, %r21, %r22;
ld.param.u32 	%r4, [%rd1+20];
ld.param.u64 	%rd2, [%rd1+56];
ld.param.u64 	%rd3, [%rd1+120];
ld.param.u64 	%rd4, [%rd1+8];
ld.param.u64 	%rd5, [%rd1];
add.s32 	%r25, %r4, -1;
and.b32  	%r5, %r25, 1;
and.b32  	%r6, %r25, -2;
setp.lt.s32 	%p2, %r4, 2;
mov.u64 	%rd21, 0;
setp.eq.s32 	%p3, %r4, 2;
setp.eq.s32 	%p5, %r5, 0;
bra.uni 	$L__BB1_2;
$L__BB1_8:
cvt.u64.u32 	%rd51, %r46;
mul.lo.s64 	%rd52, %rd2, %rd51;
mul.lo.s64 	%rd53, %rd3, %rd51;
add.s64 	%rd54, %rd64, %rd4;
add.s64 	%rd55, %rd54, %rd53;
ld.global.u16 	%rs1, [%rd55];
add.s64 	%rd56, %rd65, %rd5;
add.s64 	%rd57, %rd56, %rd52;
st.global.u16 	[%rd57], %rs1;
add.s32 	%r40, %r40, %r1;
setp.lt.u32 	%p6, %r40, %r3;
@%p6 bra 	$L__BB1_2;
bra.uni 	$L__BB1_9;
$L__BB1_2:
mov.u64 	%rd65, %rd21;
mov.u64 	%rd64, %rd21;
mov.u32 	%r46, %r40;
@%p2 bra 	$L__BB1_8;
mov.u64 	%rd64, 0;
mov.b32 	%r47, 2;
mov.u32 	%r46, %r40;
mov.u64 	%rd65, %rd64;
@%p3 bra 	$L__BB1_6;
mov.u64 	%rd64, 0;
mov.u32 	%r45, %r6;
mov.u32 	%r46, %r40;
mov.u32 	%r47, %r4;
mov.u64 	%rd65, %rd64;
$L__BB1_5:
add.s32 	%r28, %r47, -1;
mul.wide.u32 	%rd25, %r28, 4;
add.s64 	%rd26, %rd1, %rd25;
ld.param.u32 	%r29, [%rd26+24];
div.u32 	%r30, %r46, %r29;
mul.lo.s32 	%r31, %r30, %r29;
sub.s32 	%r32, %r46, %r31;
cvt.u64.u32 	%rd27, %r32;
add.s64 	%rd28, %rd26, %rd25;
ld.param.u64 	%rd29, [%rd28+56];
mul.lo.s64 	%rd30, %rd29, %rd27;
add.s64 	%rd31, %rd30, %rd65;
ld.param.u64 	%rd32, [%rd28+120];
mul.lo.s64 	%rd33, %rd32, %rd27;
add.s64 	%rd34, %rd33, %rd64;
add.s32 	%r47, %r47, -2;
mul.wide.u32 	%rd35, %r47, 4;
add.s64 	%rd36, %rd1, %rd35;
ld.param.u32 	%r33, [%rd36+24];
div.u32 	%r46, %r30, %r33;
mul.lo.s32 	%r34, %r46, %r33;
sub.s32 	%r35, %r30, %r34;
cvt.u64.u32 	%rd37, %r35;
add.s64 	%rd38, %rd36, %rd35;
ld.param.u64 	%rd39, [%rd38+56];
mul.lo.s64 	%rd40, %rd39, %rd37;
add.s64 	%rd65, %rd40, %rd31;
ld.param.u64 	%rd41, [%rd38+120];
mul.lo.s64 	%rd42, %rd41, %rd37;
add.s64 	%rd64, %rd42, %rd34;
add.s32 	%r45, %r45, -2;
setp.eq.s32 	%p4, %r45, 0;
@%p4 bra 	$L__BB1_6;
bra.uni 	$L__BB1_5;
$L__BB1_6:
@%p5 bra 	$L__BB1_8;
add.s32 	%r36, %r47, -1;
mul.wide.u32 	%rd43, %r36, 4;
add.s64 	%rd44, %rd1, %rd43;
ld.param.u32 	%r37, [%rd44+24];
div.u32 	%r11, %r46, %r37;
mul.lo.s32 	%r38, %r11, %r37;
sub.s32 	%r39, %r46, %r38;
cvt.u64.u32 	%rd45, %r39;
add.s64 	%rd46, %rd44, %rd43;
ld.param.u64 	%rd47, [%rd46+56];
mul.lo.s64 	%rd48, %rd47, %rd45;
add.s64 	%rd65, %rd48, %rd65;
ld.param.u64 	%rd49, [%rd46+120];
mul.lo.s64 	%rd50, %rd49, %rd45;
add.s64 	%rd64, %rd50, %rd64;
mov.u32 	%r46, %r11;
bra.uni 	$L__BB1_8;
$L__BB1_9:
ret;
}
.visible .entry strided_copy_4(
.param .align 8 .b8 strided_copy_4_param_0[2944]
)
{
.reg .pred 	%p<7>;
.reg .b32 	%r<49>;
.reg .b64 	%rd<66>;
mov.b64 	%rd18, strided_copy_4_param_0;
mov.u64 	%rd19, %rd18;
mov.u32 	%r20, %ctaid.y;
mul.wide.u32 	%rd20, %r20, 184;
add.s64 	%rd1, %rd19, %rd20;
mov.u32 	%r22, %ntid.x;
mov.u32 	%r23, %ctaid.x;
mov.u32 	%r24, %tid.x;
mad.lo.s32 	%r41, %r23, %r22, %r24;
ld.param.u32 	%r3, [%rd1+16];
setp.ge.u32 	%p1, %r41, %r3;
@%p1 bra 	$L__BB2_9;
mov.u32 	%r21, %nctaid.x;
mul.lo.s32 	%r1, %r21, %r22;
ld.param.u64 	%rd2, [%rd1+56];
ld.param.u64 	%rd3, [%rd1+120];
ld.param.u64 	%rd4, [%rd1+8];
ld.param.u64 	%rd5, [%rd1];
ld.param.u32 	%r4, [%rd1+20];
add.s32 	%r25, %r4, -1;
and.b32  	%r5, %r25, 1;
and.b32  	%r6, %r25, -2;
setp.lt.s32 	%p2, %r4, 2;
mov.u64 	%rd21, 0;
setp.eq.s32 	%p3, %r4, 2;
setp.eq.s32 	%p5, %r5, 0;
bra.uni 	$L__BB2_2;
$L__BB2_8:
cvt.u64.u32 	%rd51, %r47;
mul.lo.s64 	%rd52, %rd2, %rd51;
mul.lo.s64 	%rd53, %rd3, %rd51;
add.s64 	%rd54, %rd64, %rd4;
add.s64 	%rd55, %rd54, %rd53;
ld.global.u32 	%r40, [%rd55];
add.s64 	%rd56, %rd65, %rd5;
add.s64 	%rd57, %rd56, %rd52;
st.global.u32 	[%rd57], %r40;
add.s32 	%r41, %r41, %r1;
setp.lt.u32 	%p6, %r41, %r3;
@%p6 bra 	$L__BB2_2;
bra.uni 	$L__BB2_9;
$L__BB2_2:
mov.u64 	%rd65, %rd21;
mov.u64 	%rd64, %rd21;
mov.u32 	%r47, %r41;
@%p2 bra 	$L__BB2_8;
mov.u64 	%rd64, 0;
mov.b32 	%r48, 2;
mov.u32 	%r47, %r41;
mov.u64 	%rd65, %rd64;
@%p3 bra 	$L__BB2_6;
mov.u64 	%rd64, 0;
mov.u32 	%r46, %r6;
mov.u32 	%r47, %r41;
mov.u32 	%r48, %r4;
mov.u64 	%rd65, %rd64;
$L__BB2_5:
add.s32 	%r28, %r48, -1;
mul.wide.u32 	%rd25, %r28, 4;
add.s64 	%rd26, %rd1, %rd25;
ld.param.u32 	%r29, [%rd26+24];
div.u32 	%r30, %r47, %r29;
mul.lo.s32 	%r31, %r30, %r29;
sub.s32 	%r32, %r47, %r31;
cvt.u64.u32 	%rd27, %r32;
add.s64 	%rd28, %rd26, %rd25;
ld.param.u64 	%rd29, [%rd28+56];
mul.lo.s64 	%rd30, %rd29, %rd27;
add.s64 	%rd31, %rd30, %rd65;
ld.param.u64 	%rd32, [%rd28+120];
mul.lo.s64 	%rd33, %rd32, %rd27;
add.s64 	%rd34, %rd33, %rd64;
add.s32 	%r48, %r48, -2;
mul.wide.u32 	%rd35, %r48, 4;
add.s64 	%rd36, %rd1, %rd35;
ld.param.u32 	%r33, [%rd36+24];
div.u32 	%r47, %r30, %r33;
mul.lo.s32 	%r34, %r47, %r33;
sub.s32 	%r35, %r30, %r34;
cvt.u64.u32 	%rd37, %r35;
add.s64 	%rd38, %rd36, %rd35;
ld.param.u64 	%rd39, [%rd38+56];
mul.lo.s64 	%rd40, %rd39, %rd37;
add.s64 	%rd65, %rd40, %rd31;
ld.param.u64 	%rd41, [%rd38+120];
mul.lo.s64 	%rd42, %rd41, %rd37;
add.s64 	%rd64, %rd42, %rd34;
add.s32 	%r46, %r46, -2;
setp.eq.s32 	%p4, %r46, 0;
@%p4 bra 	$L__BB2_6;
bra.uni 	$L__BB2_5;
$L__BB2_6:
@%p5 bra 	$L__BB2_8;
add.s32 	%r36, %r48, -1;
mul.wide.u32 	%rd43, %r36, 4;
add.s64 	%rd44, %rd1, %rd43;
ld.param.u32 	%r37, [%rd44+24];
div.u32 	%r11, %r47, %r37;
mul.lo.s32 	%r38, %r11, %r37;
sub.s32 	%r39, %r47, %r38;
cvt.u64.u32 	%rd45, %r39;
add.s64 	%rd46, %rd44, %rd43;
ld.param.u64 	%rd47, [%rd46+56];
mul.lo.s64 	%rd48, %rd47, %rd45;
add.s64 	%rd65, %rd48, %rd65;
ld.param.u64 	%rd49, [%rd46+120];
mul.lo.s64 	%rd50, %rd49, %rd45;
add.s64 	%rd64, %rd50, %rd64;
mov.u32 	%r47, %r11;
bra.uni 	$L__BB2_8;
$L__BB2_9:
ret;
}
.visible .entry strided_copy_8(
.param .align 8 .b8 strided_copy_8_param_0[2944]
)
{
.reg .pred 	%p<7>;
.reg .b32 	%r<48>;
.reg .b64 	%rd<67>;
mov.b64 	%rd18, strided_copy_8_param_0;
mov.u64 	%rd19, %rd18;
mov.u32 	%r20, %ctaid.y;
mul.wide.u32 	%rd20, %r20, 184;
add.s64 	%rd1, %rd19, %rd20;
mov.u32 	%r22, %ntid.x;
mov.u32 	%r23, %ctaid.x;
mov.u32 	%r24, %tid.x;
mad.lo.s32 	%r40, %r23, %r22, %r24;
ld.param.u32 	%r3, [%rd1+16];
setp.ge.u32 	%p1, %r40, %r3;
@%p1 bra 	$L__BB3_9;
mov.u32 	%r21, %nctaid.x;
mul.lo.s32 	%r1, %r21, %r22;
ld.param.u32 	%r4, [%rd1+20];
ld.param.u64 	%rd2, [%rd1+56];
ld.param.u64 	%rd3, [%rd1+120];
ld.param.u64 	%rd4, [%rd1+8];
ld.param.u64 	%rd5, [%rd1];
add.s32 	%r25, %r4, -1;
and.b32  	%r5, %r25, 1;
and.b32  	%r6, %r25, -2;
setp.lt.s32 	%p2, %r4, 2;
mov.u64 	%rd21, 0;
setp.eq.s32 	%p3, %r4, 2;
setp.eq.s32 	%p5, %r5, 0;
bra.uni 	$L__BB3_2;
$L__BB3_8:
cvt.u64.u32 	%rd51, %r46;
mul.lo.s64 	%rd52, %rd2, %rd51;
add.s64 	%rd53, %rd52, %rd66;
mul.lo.s64 	%rd54, %rd3, %rd51;
add.s64 	%rd55, %rd54, %rd65;
add.s64 	%rd56, %rd55, %rd4;
ld.global.u64 	%rd57, [%rd56];
add.s64 	%rd58, %rd53, %rd5;
st.global.u64 	[%rd58], %rd57;
add.s32 	%r40, %r40, %r1;
setp.lt.u32 	%p6, %r40, %r3;
@%p6 bra 	$L__BB3_2;
bra.uni 	$L__BB3_9;
$L__BB3_2:
mov.u64 	%rd66, %rd21;
mov.u64 	%rd65, %rd21;
mov.u32 	%r46, %r40;
@%p2 bra 	$L__BB3_8;
mov.u64 	%rd65, 0;
mov.b32 	%r47, 2;
mov.u32 	%r46, %r40;
mov.u64 	%rd66, %rd65;
@%p3 bra 	$L__BB3_6;
mov.u64 	%rd65, 0;
mov.u32 	%r45, %r6;
mov.u32 	%r46, %r40;
mov.u32 	%r47, %r4;
mov.u64 	%rd66, %rd65;
$L__BB3_5:
add.s32 	%r28, %r47, -1;
mul.wide.u32 	%rd25, %r28, 4;
add.s64 	%rd26, %rd1, %rd25;
ld.param.u32 	%r29, [%rd26+24];
div.u32 	%r30, %r46, %r29;
mul.lo.s32 	%r31, %r30, %r29;
sub.s32 	%r32, %r46, %r31;
cvt.u64.u32 	%rd27, %r32;
add.s64 	%rd28, %rd26, %rd25;
ld.param.u64 	%rd29, [%rd28+56];
mul.lo.s64 	%rd30, %rd29, %rd27;
add.s64 	%rd31, %rd30, %rd66;
ld.param.u64 	%rd32, [%rd28+120];
mul.lo.s64 	%rd33, %rd32, %rd27;
add.s64 	%rd34, %rd33, %rd65;
add.s32 	%r47, %r47, -2;
mul.wide.u32 	%rd35, %r47, 4;
add.s64 	%rd36, %rd1, %rd35;
ld.param.u32 	%r33, [%rd36+24];
div.u32 	%r46, %r30, %r33;
mul.lo.s32 	%r34, %r46, %r33;
sub.s32 	%r35, %r30, %r34;
cvt.u64.u32 	%rd37, %r35;
add.s64 	%rd38, %rd36, %rd35;
ld.param.u64 	%rd39, [%rd38+56];
mul.lo.s64 	%rd40, %rd39, %rd37;
add.s64 	%rd66, %rd40, %rd31;
ld.param.u64 	%rd41, [%rd38+120];
mul.lo.s64 	%rd42, %rd41, %rd37;
add.s64 	%rd65, %rd42, %rd34;
add.s32 	%r45, %r45, -2;
setp.eq.s32 	%p4, %r45, 0;
@%p4 bra 	$L__BB3_6;
bra.uni 	$L__BB3_5;
$L__BB3_6:
@%p5 bra 	$L__BB3_8;
add.s32 	%r36, %r47, -1;
mul.wide.u32 	%rd43, %r36, 4;
add.s64 	%rd44, %rd1, %rd43;
ld.param.u32 	%r37, [%rd44+24];
div.u32 	%r11, %r46, %r37;
mul.lo.s32 	%r38, %r11, %r37;
sub.s32 	%r39, %r46, %r38;
cvt.u64.u32 	%rd45, %r39;
add.s64 	%rd46, %rd44, %rd43;
ld.param.u64 	%rd47, [%rd46+56];
mul.lo.s64 	%rd48, %rd47, %rd45;
add.s64 	%rd66, %rd48, %rd66;
ld.param.u64 	%rd49, [%rd46+120];
mul.lo.s64 	%rd50, %rd49, %rd45;
add.s64 	%rd65, %rd50, %rd65;
mov.u32 	%r46, %r11;
bra.uni 	$L__BB3_8;
$L__BB3_9:
ret;
}
.visible .entry strided_copy_16(
.param .align 8 .b8 strided_copy_16_param_0[2944]
)
{
.reg .pred 	%p<7>;
.reg .b32 	%r<52>;
.reg .b64 	%rd<66>;
mov.b64 	%rd18, strided_copy_16_param_0;
mov.u64 	%rd19, %rd18;
mov.u32 	%r20, %ctaid.y;
mul.wide.u32 	%rd20, %r20, 184;
add.s64 	%rd1, %rd19, %rd20;
mov.u32 	%r22, %ntid.x;
mov.u32 	%r23, %ctaid.x;
mov.u32 	%r24, %tid.x;
mad.lo.s32 	%r44, %r23, %r22, %r24;
ld.param.u32 	%r3, [%rd1+16];
setp.ge.u32 	%p1, %r44, %r3;
@%p1 bra 	$L__BB4_9;
mov.u32 	%r21, %nctaid.x;
mul.lo.s32 	%r1, %r21, %r22;
ld.param.u32 	%r4, [%rd1+20];
ld.param.u64 	%rd2, [%rd1+56];
ld.param.u64 	%rd3, [%rd1+120];
ld.param.u64 	%rd4, [%rd1+8];
ld.param.u64 	%rd5, [%rd1];
add.s32 	%r25, %r4, -1;
and.b32  	%r5, %r25, 1;
and.b32  	%r6, %r25, -2;
setp.lt.s32 	%p2, %r4, 2;
mov.u64 	%rd21, 0;
setp.eq.s32 	%p3, %r4, 2;
setp.eq.s32 	%p5, %r5, 0;
bra.uni 	$L__BB4_2;
$L__BB4_8:
cvt.u64.u32 	%rd51, %r50;
mul.lo.s64 	%rd52, %rd2, %rd51;
add.s64 	%rd53, %rd52, %rd65;
mul.lo.s64 	%rd54, %rd3, %rd51;
add.s64 	%rd55, %rd54, %rd64;
add.s64 	%rd56, %rd55, %rd4;
ld.global.v4.u32 	{%r40, %r41, %r42, %r43}, [%rd56];
add.s64 	%rd57, %rd53, %rd5;
st.global.v4.u32 	[%rd57], {%r40, %r41, %r42, %r43};
add.s32 	%r44, %r44, %r1;
setp.lt.u32 	%p6, %r44, %r3;
@%p6 bra 	$L__BB4_2;
bra.uni 	$L__BB4_9;
$L__BB4_2:
mov.u64 	%rd65, %rd21;
mov.u64 	%rd64, %rd21;
mov.u32 	%r50, %r44;
@%p2 bra 	$L__BB4_8;
mov.u64 	%rd64, 0;
mov.b32 	%r51, 2;
mov.u32 	%r50, %r44;
mov.u64 	%rd65, %rd64;
@%p3 bra 	$L__BB4_6;
mov.u64 	%rd64, 0;
mov.u32 	%r49, %r6;
mov.u32 	%r50, %r44;
mov.u32 	%r51, %r4;
mov.u64 	%rd65, %rd64;
$L__BB4_5:
add.s32 	%r28, %r51, -1;
mul.wide.u32 	%rd25, %r28, 4;
add.s64 	%rd26, %rd1, %rd25;
ld.param.u32 	%r29, [%rd26+24];
div.u32 	%r30, %r50, %r29;
mul.lo.s32 	%r31, %r30, %r29;
sub.s32 	%r32, %r50, %r31;
cvt.u64.u32 	%rd27, %r32;
add.s64 	%rd28, %rd26, %rd25;
ld.param.u64 	%rd29, [%rd28+56];
mul.lo.s64 	%rd30, %rd29, %rd27;
add.s64 	%rd31, %rd30, %rd65;
ld.param.u64 	%rd32, [%rd28+120];
mul.lo.s64 	%rd33, %rd32, %rd27;
add.s64 	%rd34, %rd33, %rd64;
add.s32 	%r51, %r51, -2;
mul.wide.u32 	%rd35, %r51, 4;
add.s64 	%rd36, %rd1, %rd35;
ld.param.u32 	%r33, [%rd36+24];
div.u32 	%r50, %r30, %r33;
mul.lo.s32 	%r34, %r50, %r33;
sub.s32 	%r35, %r30, %r34;
cvt.u64.u32 	%rd37, %r35;
add.s64 	%rd38, %rd36, %rd35;
ld.param.u64 	%rd39, [%rd38+56];
mul.lo.s64 	%rd40, %rd39, %rd37;
add.s64 	%rd65, %rd40, %rd31;
ld.param.u64 	%rd41, [%rd38+120];
mul.lo.s64 	%rd42, %rd41, %rd37;
add.s64 	%rd64, %rd42, %rd34;
add.s32 	%r49, %r49, -2;
setp.eq.s32 	%p4, %r49, 0;
@%p4 bra 	$L__BB4_6;
bra.uni 	$L__BB4_5;
$L__BB4_6:
@%p5 bra 	$L__BB4_8;
add.s32 	%r36, %r51, -1;
mul.wide.u32 	%rd43, %r36, 4;
add.s64 	%rd44, %rd1, %rd43;
ld.param.u32 	%r37, [%rd44+24];
div.u32 	%r11, %r50, %r37;
mul.lo.s32 	%r38, %r11, %r37;
sub.s32 	%r39, %r50, %r38;
cvt.u64.u32 	%rd45, %r39;
add.s64 	%rd46, %rd44, %rd43;
ld.param.u64 	%rd47, [%rd46+56];
mul.lo.s64 	%rd48, %rd47, %rd45;
add.s64 	%rd65, %rd48, %rd65;
ld.param.u64 	%rd49, [%rd46+120];
mul.lo.s64 	%rd50, %rd49, %rd45;
add.s64 	%rd64, %rd50, %rd64;
mov.u32 	%r50, %r11;
bra.uni 	$L__BB4_8;
$L__BB4_9:
ret;
}
)ptx";

}  // namespace artifex_devices::cuda
