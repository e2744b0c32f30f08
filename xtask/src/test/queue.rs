//! The order in which parts run, two at a time: of those that call cargo one, because cargo locks its folder, and beside it one
//! that tests the package.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::parts::Part;

/// The part that makes the package.
const BUILD: &str = "build";

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<&'static Part>,
    /// Whether a part runs that calls cargo, other than the build, whose profiles are its own.
    is_cargo_busy: bool,
    package: Package,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Package {
    Awaited,
    There,
    Failed,
}

impl Queue {
    /// The build comes first: everything that tests the package waits for it.
    pub(super) fn new(parts: &[&'static Part]) -> Self {
        let mut waiting = parts.to_vec();
        waiting.sort_by_key(|part| part.name != BUILD);
        let is_built = waiting.iter().any(|part| part.name == BUILD);
        let package = if is_built { Package::Awaited } else { Package::There };
        Queue { state: Mutex::new(State { waiting, is_cargo_busy: false, package }), changed: Condvar::new() }
    }

    /// Returns the next part as soon as one may run, with what there is of the package; nothing if none is left.
    pub(super) fn next(&self) -> Option<(&'static Part, Package)> {
        let mut state = self.state();
        loop {
            if state.waiting.is_empty() {
                return None;
            }
            if let Some(at) = state.waiting.iter().position(|part| state.may_run(part)) {
                let part = state.waiting.remove(at);
                state.is_cargo_busy |= is_cargos(part);
                return Some((part, state.package));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn done(&self, part: &Part, has_failed: bool) {
        let mut state = self.state();
        if part.name == BUILD {
            state.package = if has_failed { Package::Failed } else { Package::There };
        }
        state.is_cargo_busy &= !is_cargos(part);
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_run(&self, part: &Part) -> bool {
        if part.needs.wants_package() {
            self.package != Package::Awaited
        } else {
            part.name == BUILD || !self.is_cargo_busy
        }
    }
}

fn is_cargos(part: &Part) -> bool {
    part.name != BUILD && !part.needs.wants_package()
}

#[cfg(test)]
mod tests {
    use super::super::parts::PARTS;
    use super::*;

    fn part(name: &str) -> &'static Part {
        PARTS.iter().find(|part| part.name == name).unwrap()
    }

    #[test]
    fn the_build_runs_beside_the_crates_and_the_package_is_tested_after_it() {
        let queue = Queue::new(&[part("clippy"), part("rust"), part("build"), part("node")]);
        let next = || queue.next().unwrap().0.name;
        assert_eq!((next(), next()), ("build", "clippy"));
        queue.done(part("clippy"), false);
        assert_eq!(next(), "rust");
        queue.done(part("build"), true);
        let (last, package) = queue.next().unwrap();
        assert_eq!(last.name, "node");
        assert!(package == Package::Failed);
        assert!(queue.next().is_none());
    }

    #[test]
    fn without_a_build_the_package_is_the_one_that_is_there() {
        let queue = Queue::new(&[part("node")]);
        assert!(queue.next().is_some_and(|(_, package)| package == Package::There));
    }
}
