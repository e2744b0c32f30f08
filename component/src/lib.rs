//! The crate turnwheel as a machine for hosts in any language: a core module without imports. It has no clock, no network, no
//! tools and no chance of its own. The host calls `step` with what has happened, and does what the answer asks for. README.md
//! has the messages.
//!
//! `desk` keeps the effects, `ports` and `rules` make effects of what the crate asks its host, `config` reads the options,
//! `machine` makes the steps, and `rollback` takes one back.

#![cfg(target_arch = "wasm32")]

mod config;
mod desk;
mod input;
mod machine;
mod ports;
mod rollback;
mod rules;

use std::cell::RefCell;

use machine::Machine;

/// As in the npm package.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

thread_local! {
    static MACHINE: RefCell<Machine> = RefCell::default();
    /// What the host writes, and what it reads.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for the text of the next step, and returns its address.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an export has a name of its own")]
extern "C" fn alloc(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        text.resize(length, 0);
        text.as_mut_ptr()
    })
}

/// Makes a step. The text is at the address that `alloc` has returned. The answer's address is in the upper 32 bits, its
/// length in the lower; it lies there until the next call.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "an export has a name of its own")]
extern "C" fn step(_at: *const u8, length: usize) -> u64 {
    let mut text = TEXT.take();
    text.truncate(length);
    let text = String::from_utf8_lossy(&text).into_owned();
    let answer = MACHINE.with_borrow_mut(|machine| machine.step(&text));
    TEXT.with_borrow_mut(|kept| {
        *kept = answer.into_bytes();
        let part = |number: usize| u64::try_from(number).unwrap_or_default();
        part(kept.as_ptr() as usize) << 32 | part(kept.len())
    })
}
