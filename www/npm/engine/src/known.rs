//! The secrets of an agent and of the agents inside its calls: those of its models, and those that were sent. A tool may
//! read the environment, or a file with keys, and shows none of them.

use std::cell::RefCell;
use std::rc::Rc;

use turnwheel::json::Value;
use turnwheel::secrets::Secrets;

use crate::settings::Models;

/// Those that were sent longest ago are forgotten: tokens that are renewed are no secrets for long.
const MOST_SENT: usize = 16;

/// See the module.
#[derive(Default)]
pub(crate) struct Known {
    of_models: RefCell<Vec<Rc<Secrets>>>,
    sent: RefCell<Vec<Rc<Secrets>>>,
}

impl Known {
    pub(crate) fn add_sent(&self, secrets: &Rc<Secrets>) {
        let mut sent = self.sent.borrow_mut();
        let is_known = |known: &[Rc<Secrets>]| {
            known.iter().any(|known| Rc::ptr_eq(known, secrets) || known.is_same(secrets))
        };
        if secrets.is_empty() || is_known(&sent) || is_known(&self.of_models.borrow()) {
            return;
        }
        if sent.len() >= MOST_SENT {
            sent.remove(0);
        }
        sent.push(secrets.clone());
    }

    fn for_each(&self, models: &Models, mut act: impl FnMut(&Secrets)) {
        self.read_all(models);
        self.of_models.borrow().iter().chain(self.sent.borrow().iter()).for_each(|secrets| act(secrets));
    }

    /// Masks what a tool has said, in an agent that has these models.
    pub(crate) fn mask(&self, models: &Models, text: &mut String) {
        self.for_each(models, |secrets| secrets.mask_whole(text));
    }

    /// Masks a text of an error.
    pub(crate) fn masked(&self, models: &Models, mut text: String) -> String {
        self.for_each(models, |secrets| secrets.mask(&mut text));
        text
    }

    /// The settings of models are read when something is first masked.
    fn read_all(&self, models: &Models) {
        for (settings, _, is_known) in models.borrow().iter() {
            if !is_known.replace(true) {
                self.read(&Value::parse(settings).unwrap_or_default());
            }
        }
    }

    fn read(&self, settings: &Value) {
        let mut secrets = Secrets::of_key(settings.text_at("apiKey"));
        let headers = settings.members_at("headers").iter();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        secrets.add_request(settings.text_at("baseUrl").unwrap_or_default(), &headers.collect::<Vec<_>>());
        let mut known = self.of_models.borrow_mut();
        if !secrets.is_empty() && !known.iter().any(|known| known.is_same(&secrets)) {
            known.push(Rc::new(secrets));
        }
    }
}
