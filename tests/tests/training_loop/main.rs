//! The trainer's closed loop against slower ones, against finite differences and against the simulator:
//! one program, because what is generic in it takes a minute to compile.

mod agreement;
mod drawn;
mod rollout;
