//! What a call has used: as the provider has told, and estimated where it has not.

use crate::rules::estimate::{tokens_of_answer, tokens_of_request, was_refused};
use crate::words::error::ErrorInfo;
use crate::words::message::{ContentBlock, Usage};

use super::phase::Streaming;
use super::step::Step;

impl Step<'_> {
    /// Completes what is known of the usage of a call that is over. `error` is why it failed, if it did.
    pub(super) fn account(&self, model: usize, streaming: &mut Streaming, error: Option<&ErrorInfo>) {
        let told = self.priced(model, &streaming.assembler.usage);
        streaming.assembler.usage = told;
        let is_told = error.is_none() && told.total > 0;
        let is_unread = streaming.assembler.is_empty() && error.is_some_and(was_refused);
        if is_told || told.estimated || is_unread {
            return;
        }
        // Of an answer that fills the memory there can be no copy; what there is of its words is not known then.
        let fits = streaming.assembler.can_be_handed_over();
        let content = || if fits { streaming.assembler.clone().written() } else { Vec::new() };
        streaming.assembler.usage = self.estimated(model, &told, error.is_none(), &content);
    }

    /// A model of the host's own may know its price and leave the multiplication and the sum to the engine.
    fn priced(&self, model: usize, told: &Usage) -> Usage {
        let mut told = told.totalled();
        if told.cost.is_none() && told.total > 0 {
            let price = self.rules.models.get(model).and_then(|name| name.price);
            told.cost = price.map(|price| price.of(&told));
        }
        told
    }

    /// A usage of which a part may be missing, with that part estimated.
    #[cold]
    pub(super) fn estimated(
        &self,
        model: usize,
        told: &Usage,
        is_whole: bool,
        content: &dyn Fn() -> Vec<ContentBlock>,
    ) -> Usage {
        let told = self.priced(model, told);
        let Some(name) = self.rules.models.get(model).filter(|name| name.estimates_usage) else {
            return told;
        };
        let mut usage = Usage { total: 0, ..told };
        if told.input == 0 && told.cache_read == 0 && told.cache_write == 0 {
            usage.input = self.expected_input();
        }
        let output = tokens_of_answer(&content(), self.state.history.messages(), &name.id, is_whole);
        // Some wires tell how much there is so far, others only how much there was at the start.
        if told.output < output / 2 {
            usage.output = output;
        }
        usage.estimated = told.estimated || usage.input != told.input || usage.output != told.output;
        if usage.estimated {
            usage.cost = name.price.map(|price| price.of(&usage)).or(told.cost);
        }
        usage.totalled()
    }

    /// The tokens that the next request is expected to have.
    pub(super) fn expected_input(&self) -> u64 {
        tokens_of_request(self.shown_list(), &self.rules.system_prompt, &self.rules.schemas)
    }
}
