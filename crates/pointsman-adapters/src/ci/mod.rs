//! CI servers. What a red step means is decided in the core (`verdict`); what the forge shows of any CI is read there.

pub mod woodpecker;
