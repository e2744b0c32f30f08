//! A chat in the browser: an answer streams in, a tool runs, another one asks first.

mod chat;
mod tools;

use leptos::prelude::*;

use chat::{Chat, Question};

fn main() {
    leptos::mount::mount_to_body(App);
}

#[component]
fn App() -> impl IntoView {
    match Chat::new() {
        Ok(chat) => view! { <Conversation chat/> }.into_any(),
        Err(error) => view! { <p class="note">{error}</p> }.into_any(),
    }
}

#[component]
fn Conversation(chat: Chat) -> impl IntoView {
    let prompt = RwSignal::new(String::new());
    let send = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let text = prompt.get();
        if !text.trim().is_empty() && !chat.is_running.get() {
            prompt.set(String::new());
            chat.send(&text);
        }
    };
    view! {
        <h1>"A chat in Rust"</h1>
        <ol aria-live="polite">
            <For each=move || chat.lines.get() key=|line| line.id let(line)>
                <li class=line.class>{line.text}</li>
            </For>
        </ol>
        <For each=move || chat.questions.get() key=|question| question.id.clone() let(question)>
            <Ask chat question/>
        </For>
        <form on:submit=send>
            <input aria-label="Message" placeholder="Paint the page in your favourite colour" bind:value=prompt/>
            <Show
                when=move || chat.is_running.get()
                fallback=|| view! { <button type="submit">"Send"</button> }
            >
                <button type="button" on:click=move |_| chat.stop()>"Stop"</button>
            </Show>
        </form>
        <p class="note" role="status">{chat.status}</p>
    }
}

/// A call that waits for a person.
#[component]
fn Ask(chat: Chat, question: Question) -> impl IntoView {
    let id = StoredValue::new(question.id);
    view! {
        <div class="question" role="group" aria-label="Approval">
            <p>{format!("May it call {} with {}?", question.tool_name, question.arguments)}</p>
            <button on:click=move |_| chat.decide(&id.get_value(), true)>"Allow"</button>
            " "
            <button on:click=move |_| chat.decide(&id.get_value(), false)>"Refuse"</button>
        </div>
    }
}
