//! Steps of the build that run only when their inputs have changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

/// The folder for the outputs of the steps: one subfolder each, next to the compiled crate, so
/// separate for each profile.
pub(super) struct StepCache(pub(super) PathBuf);

impl StepCache {
    pub(super) fn next_to(compiled: &Path) -> Result<Self> {
        let folder = compiled.with_file_name("xtask");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Returns the folder of a step. `make` fills it, unless the same code already filled
    /// it from the same inputs.
    pub(super) fn make(
        &self,
        name: &str,
        inputs: impl Hash,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        (include_str!("mod.rs"), include_str!("bind.rs"), include_str!("scripts.rs"), inputs)
            .hash(&mut hasher);
        let mark = format!("{:016x}", hasher.finish());
        let (folder, stamp) = (self.0.join(name), self.0.join(format!("{name}.made-from")));
        if fs::read_to_string(&stamp).is_ok_and(|made| made == mark) && folder.is_dir() {
            return Ok(folder);
        }
        let start = Instant::now();
        let _ = fs::remove_file(&stamp);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        make(&folder)?;
        fs::write(&stamp, mark)?;
        eprintln!("{name:>12} {:.1} s", start.elapsed().as_secs_f32());
        Ok(folder)
    }
}

/// An empty folder for a test.
#[cfg(test)]
pub(super) fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-pack-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_step_runs_again_only_when_its_inputs_change() {
        let cache = StepCache(scratch("steps"));
        let mut runs = 0;
        for input in ["a", "a", "b", "b"] {
            let count = |_: &Path| {
                runs += 1;
                Ok(())
            };
            cache.make("step", input, count).unwrap();
        }
        assert_eq!(runs, 2);
    }

    #[test]
    fn a_step_that_failed_runs_again() {
        let cache = StepCache(scratch("failing"));
        assert!(cache.make("step", "a", |_| bail!("no")).is_err());
        let mut ran = false;
        let note = |_: &Path| {
            ran = true;
            Ok(())
        };
        cache.make("step", "a", note).unwrap();
        assert!(ran);
    }
}
