//! Random numbers, and the ids of runs and sessions.

use js_sys::{Math, Reflect, Uint8Array};
use turnwheel::AgentRunContext;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    type Crypto;

    #[wasm_bindgen(thread_local_v2, js_name = crypto)]
    static CRYPTO: Option<Crypto>;

    #[wasm_bindgen(method, js_name = randomUUID)]
    fn random_uuid(this: &Crypto) -> String;

    #[wasm_bindgen(method, js_name = getRandomValues)]
    fn fill(this: &Crypto, bytes: &Uint8Array);
}

/// Returns 32 random bits, for the jitter of retries: [`Rules::random`](turnwheel::config::Rules::random).
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of 32 bits")]
pub fn random() -> u32 {
    (Math::random() * 4_294_967_296.0) as u32
}

/// Returns a random UUID, version 4.
///
/// ```no_run
/// use turnwheel::AgentRunContext;
/// use turnwheel_web::uuid;
///
/// let session = uuid();
/// let who = AgentRunContext::new(&uuid(), &session);
/// ```
pub fn uuid() -> String {
    CRYPTO.with(|crypto| match crypto {
        Some(crypto) if has(crypto, "randomUUID") => crypto.random_uuid(),
        // Pages served over plain HTTP have no `randomUUID`.
        Some(crypto) => {
            let bytes = Uint8Array::new_with_length(16);
            crypto.fill(&bytes);
            format(bytes.to_vec())
        }
        // An id has to be unique, not secret.
        None => format((0..16).map(|_| random().to_le_bytes()[0]).collect()),
    })
}

/// Returns the ids of a run of a new conversation. A conversation that goes on keeps its session id:
/// [`AgentRunContext::new`] with [`uuid`].
pub fn new_context() -> AgentRunContext {
    AgentRunContext::new(&uuid(), &uuid())
}

fn has(crypto: &Crypto, name: &str) -> bool {
    Reflect::get(crypto, &name.into()).is_ok_and(|member| member.is_function())
}

/// Formats 16 random bytes, with the version and the variant in their places.
fn format(bytes: Vec<u8>) -> String {
    let mut text = String::with_capacity(36);
    for (place, byte) in bytes.into_iter().enumerate() {
        let byte = match place {
            6 => byte & 15 | 64,
            8 => byte & 63 | 128,
            _ => byte,
        };
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
