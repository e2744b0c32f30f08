//! A test world for an agent loop in virtual time: scripted models, tools and users, and a record of what
//! they saw. Scenarios are read from files ([`scenario`]), played ([`play`]) and recorded ([`trace`]).

pub mod clock;
pub mod dice;
pub mod family;
pub mod grammar;
pub mod host;
pub mod hostile;
pub mod play;
pub mod ports;
pub mod random;
pub mod replay;
pub mod scenario;
pub mod schema;
mod second;
pub mod sim;
pub mod trace;
pub mod worlds;
