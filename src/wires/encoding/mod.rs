//! What the requests of all wires share.

pub(super) mod address;
pub(super) mod body;
pub(super) mod files;
pub(super) mod headers;
pub(super) mod history;
pub(super) mod ids;
pub(super) mod models;
pub(super) mod options;
pub(crate) mod schemas;
pub(super) mod strict;
pub(super) mod tools;
