use super::details::MAX_MESSAGE;
use super::*;
use ErrorKind as K;

fn answer(status: u16, body: &str) -> ErrorInfo {
    ErrorResponse { status, header: &|_| None, body: body.as_bytes(), now: 0 }.error()
}

fn with_headers(status: u16, body: &str, headers: &[(&str, &str)]) -> ErrorInfo {
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned());
    ErrorResponse { status, header: &header, body: body.as_bytes(), now: 0 }.error()
}

fn openai(message: &str) -> String {
    let mut body = String::from("{\"error\":{\"message\":");
    crate::data::json::write_str(message, &mut body);
    body + ",\"type\":\"invalid_request_error\",\"code\":null}}"
}

#[test]
fn every_known_overflow_text_is_an_overflow() {
    let texts = [
        "prompt is too long: 3333404 tokens > 200000 maximum",
        "input length and max_tokens exceed context limit: 190000 + 20000 > 200000, decrease input length",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 150021",
        "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
        "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021",
        "Token limit reached",
        "prompt too long; exceeded max context length by 12 tokens (ref: x)",
        "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        "The total length of all messages is too long.",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length",
        "Input is too long for requested model.",
        "too many tokens: size limit exceeded by 4 tokens",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion",
        "Prompt contains 200000 tokens and is too large for model with 131072 maximum context length",
        "tokens to keep from the initial prompt is greater than the context length",
        "prompt token count of 150000 exceeds the limit of 128000",
        "exceeded model token limit: 131072 (requested: 140000)",
        "invalid params, context window exceeds limit",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
        "Context size has been exceeded.",
        "However, the model is loaded with context length of only 4096 tokens, which is not enough",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "AiError: (8000) exceeded this model context window limit (7968).",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        "Total tokens of image and text exceed max message tokens.",
        "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 10000 `inputs` tokens",
        "Prompt exceeds max length",
        "tokens in request more than max tokens allowed",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    ];
    for text in texts {
        assert_eq!(answer(400, &openai(text)).code, K::ContextOverflow, "{text}");
    }
    assert_eq!(answer(413, "<html><title>413 Request Entity Too Large</title>").code, K::ContextOverflow);
    assert_eq!(answer(400, "").code, K::ContextOverflow);
    assert_eq!(answer(413, "").code, K::ContextOverflow);
}

#[test]
fn an_id_that_is_too_long_is_no_overflow() {
    let text = |limit: &str| {
        let message =
            ["string too long. Expected a string with maximum length ", limit, ", but got"].concat();
        openai(&message).replace("null", "\"string_above_max_length\"")
    };
    assert_eq!(answer(400, &text("40")).code, K::InvalidRequest);
    assert_eq!(answer(400, &text("1048576")).code, K::ContextOverflow);
}

#[test]
fn a_sign_of_life_is_no_error() {
    let is = |text: &str| is_error(&Value::parse(text).unwrap());
    assert!(!is(r#"{"detail":[]}"#) && !is(r#"{"message":""}"#));
    assert!(!is(r#"{"type":"keepalive"}"#) && !is(r#"{"status":"processing","code":1}"#));
    assert!(is(r#"{"error":{"code":500}}"#) && is(r#"[{"error":{"status":"INTERNAL"}}]"#));
}

#[test]
fn texts_about_rates_are_no_overflow() {
    for text in ["Too many tokens, please wait before trying again.", "rate exceeds the limit of 20"] {
        let info = answer(429, &openai(text));
        assert_eq!((info.code, info.retryable), (K::Throttled, true), "{text}");
    }
}

#[test]
fn a_request_larger_than_the_quota_of_a_minute_is_not_retried() {
    let text = "Request too large for gpt-4o in organization x on tokens per min (TPM): Limit 30000, Requested 40000.";
    for status in [429, 413] {
        let info = answer(status, &openai(text));
        assert_eq!((info.code, info.retryable), (K::Throttled, false), "{status}");
    }
    let text = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 27000, Requested 6000.";
    assert!(answer(429, &openai(text)).retryable);
}

#[test]
fn spent_money_is_throttled_and_final() {
    let bodies = [
        (429, r#"{"error":{"message":"x","type":"insufficient_quota"}}"#),
        (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#),
        (402, "{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"x\"}}"),
        (429, r#"{"error":{"message":"x","error_code":"enforced_spend_limit_reached"}}"#),
        (429, r#"{"error_code":"contract_spend_limit_reached","error":{"message":"x"}}"#),
        (400, r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#),
        (400, r#"{"error":{"message":"You have reached your specified API usage limits."}}"#),
        (429, r#"{"error":{"message":"Extra usage is required for long context requests."}}"#),
        (429, r#"{"error":{"message":"Quota exceeded, limit: 0, model: x\nPlease retry in 26.6s."}}"#),
        (429, r#"{"error":{"message":"Your prepayment credits are depleted."}}"#),
        (429, r#"{"errors":[{"message":"you have used up your daily free allocation of 10,000 neurons"}]}"#),
        (429, r#"{"error":{"message":"x","type":"exceeded_current_quota_error"}}"#),
        (403, r#"{"code":"x","error":"Your newly created team doesn't have any credits yet."}"#),
        (403, r#"{"error":{"message":"Key limit exceeded (total limit).","code":403}}"#),
        (400, r#"{"error":{"message":"Access denied.","code":"Arrearage"}}"#),
    ];
    for (status, body) in bodies {
        let info = answer(status, body);
        assert_eq!((info.code, info.retryable), (K::Throttled, false), "{body}");
    }
}

#[test]
fn every_form_of_body_gives_up_its_message() {
    let bodies = [
        (r#"{"error":{"message":"m","type":"t","code":"c"}}"#, Some("t"), Some("c")),
        (
            r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#,
            Some("INVALID_ARGUMENT"),
            Some("400"),
        ),
        (r#"{"error":"m"}"#, None, None),
        (r#"{"code":"c","error":"m"}"#, None, Some("c")),
        (r#"{"detail":"m"}"#, None, None),
        (r#"{"detail":[{"loc":[],"msg":"m","type":"missing"}]}"#, None, None),
        (r#"{"object":"error","message":"m","type":"t","code":"1500"}"#, Some("t"), Some("1500")),
        (r#"{"object":"error","message":{"detail":[{"msg":"m"}]},"type":"t","code":null}"#, Some("t"), None),
        (r#"{"code":400,"message":"m","type":"t"}"#, Some("t"), Some("400")),
        (r#"{"message":"m"}"#, None, None),
        (r#"{"success":false,"errors":[{"code":7003,"message":"m"}]}"#, None, Some("7003")),
        ("m", None, None),
        ("<html><head><title> m </title></head></html>", None, None),
    ];
    for (body, kind, code) in bodies {
        let info = answer(400, body);
        let provider = info.provider.unwrap();
        assert_eq!(info.message, "m", "{body}");
        assert_eq!((provider.kind.as_deref(), provider.code.as_deref()), (kind, code), "{body}");
        assert_eq!(provider.status, Some(400));
    }
    let fastapi = r#"{"detail":[{"loc":["body","n"],"msg":"too big"},{"msg":"b"}]}"#;
    assert_eq!(answer(422, fastapi).message, "body.n: too big; b");
}

#[test]
fn an_address_that_nobody_knows_is_asked_about() {
    let hint = "; is the address that of the API?";
    for (body, expected) in
        [("404 page not found", "404 page not found"), (r#"{"detail":"Not Found"}"#, "Not Found")]
    {
        assert_eq!(answer(404, body).message, [expected, hint].concat());
        assert_eq!(answer(400, body).message, expected);
    }
    let model = r#"{"error":{"message":"model \"m\" not found"}}"#;
    assert_eq!(answer(404, model).message, "model \"m\" not found");
}

#[test]
fn the_bare_status_decides_last() {
    let kinds = [
        (400, K::InvalidRequest),
        (401, K::Auth),
        (403, K::Auth),
        (404, K::InvalidRequest),
        (408, K::Network),
        (429, K::Throttled),
        (499, K::Network),
        (409, K::Server),
        (500, K::Server),
        (502, K::Server),
        (503, K::Overloaded),
        (504, K::Server),
        (520, K::Server),
        (529, K::Overloaded),
        (302, K::InvalidRequest),
    ];
    for (status, kind) in kinds {
        let info = answer(status, "{}");
        assert_eq!((info.code, info.retryable), (kind, kind.is_transient()), "{status}");
    }
}

#[test]
fn keys_and_filters_hide_behind_other_statuses() {
    let xai = r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#;
    assert_eq!(answer(400, xai).code, K::Auth);
    let gemini = r#"{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    assert_eq!(answer(400, gemini).code, K::Auth);
    let azure = r#"{"error":{"message":"x","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#;
    assert_eq!(answer(400, azure).code, K::ContentFiltered);
    let openrouter = r#"{"error":{"code":403,"message":"x","metadata":{"flagged_input":"y"}}}"#;
    assert_eq!(answer(403, openrouter).code, K::ContentFiltered);
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#;
    assert_eq!(answer(400, anthropic).code, K::ContentFiltered);
    let openai = r#"{"error":{"message":"Your request was rejected as a result of our safety system."}}"#;
    assert_eq!(answer(400, openai).code, K::ContentFiltered);
    let moonshot =
        r#"{"error":{"message":"The engine is currently overloaded","type":"engine_overloaded_error"}}"#;
    assert_eq!(answer(429, moonshot).code, K::Overloaded);
}

#[test]
fn the_server_may_overrule_its_status_but_not_its_words() {
    let no = with_headers(500, "{}", &[("x-should-retry", "false"), ("retry-after", "3")]);
    assert_eq!((no.code, no.retryable, no.retry_after_ms), (K::Server, false, None));
    let yes = with_headers(400, "{}", &[("x-should-retry", "true"), ("retry-after", "3")]);
    assert_eq!((yes.code, yes.retryable, yes.retry_after_ms), (K::InvalidRequest, true, Some(3_000)));
    let spent = r#"{"error":{"message":"x","type":"insufficient_quota"}}"#;
    assert!(!with_headers(429, spent, &[("x-should-retry", "true")]).retryable);
}

#[test]
fn the_nearest_hint_wins() {
    let body = r#"{"error":{"message":"Please try again in 5.82s","details":[{"retryDelay":"48s"}]}}"#;
    let hints = [
        ("retry-after-ms", "700"),
        ("retry-after", "2"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    let delay = |from: usize, body: &str| {
        with_headers(429, body, hints.get(from..).unwrap_or_default()).retry_after_ms
    };
    assert_eq!(delay(0, body), Some(700));
    assert_eq!(delay(1, body), Some(2_000));
    assert_eq!(delay(2, body), Some(48_000));
    assert_eq!(delay(2, &openai("Please try again in 5.82s")), Some(5_820));
    assert_eq!(delay(2, "{}"), Some(360_000));
    assert_eq!(delay(4, "{}"), None);
}

/// Status 0: inside a stream.
#[test]
fn words_are_judged_with_the_status_that_they_came_with() {
    let cases = [
        (400, "filtered by the content management policy", K::ContentFiltered),
        (400, "Rate limit exceeded", K::Throttled),
        (500, "Rate limit exceeded", K::Server),
        (0, "Rate limit exceeded", K::Throttled),
        (413, "Request too large on token per min: Limit: 30,000, Requested 4,500,000", K::Throttled),
        (0, "Requests per min: Limit 3, Requested 3.", K::Server),
        (429, "Token limit reached", K::Throttled),
        (400, "The input token count is negative", K::InvalidRequest),
        (400, "max_tokens exceeds the maximum number of tokens", K::InvalidRequest),
        (400, "the input exceeds the limit of 4096", K::ContextOverflow),
        (400, "names have a maximum length 2000", K::InvalidRequest),
        (400, "limit: 3, requested: 5", K::InvalidRequest),
        (402, "x", K::Throttled),
        (400, "limit: 0, got 1", K::InvalidRequest),
        (0, "You exceeded your current quota", K::Throttled),
        (429, "invalid api key", K::Throttled),
        (500, "invalid api key", K::Server),
        (404, "invalid api key", K::Auth),
        (400, "the station is overloaded", K::InvalidRequest),
        (429, "The server is busy", K::Overloaded),
        (500, "The server is busy", K::Overloaded),
        (0, "The server is busy", K::Overloaded),
    ];
    for (status, message, kind) in cases {
        let body = ["{\"error\":{\"message\":\"", message, "\"}}"].concat();
        let info = if status == 0 { in_stream_text(&body) } else { answer(status, &body) };
        assert_eq!((info.code, info.message.as_str()), (kind, message), "{status}");
    }
    assert_eq!(answer(500, "").code, K::Server);
    assert_eq!(answer(418, "").message, "the provider answered 418 without a body");
    let plain = openai("x");
    assert!(with_headers(400, &plain, &[("x-should-retry", "true")]).retryable);
}

#[test]
fn names_and_statuses_stand_in_many_places() {
    let cases = [
        (r#"{"error":{"message":"m","status_code":429}}"#, K::Throttled, None),
        (r#"{"error":{"message":"m","raw_status_code":503}}"#, K::Overloaded, None),
        (r#"{"error":{"message":"m","status":401}}"#, K::Auth, None),
        (r#"{"error":{"message":"m"},"status_code":429}"#, K::Throttled, None),
        (r#"{"code":503,"error":{"message":"m"}}"#, K::Overloaded, Some("503")),
        (r#"{"error":{"message":"m","type":"t","status":"UNAVAILABLE"}}"#, K::Overloaded, None),
        (r#"{"error":{"message":"m","error_code":"e"}}"#, K::Server, Some("e")),
        (r#"{"error":{"message":"m","code":20}}"#, K::Server, Some("20")),
        (r#"{"error":{"message":"m","code":400,"details":[{"reason":"r"}]}}"#, K::InvalidRequest, Some("r")),
        (r#"{"error":{"message":"m","innererror":{"code":"i"}}}"#, K::Server, Some("i")),
        (r#"{"error":{"message":"m","type":"request_timeout"}}"#, K::Network, None),
        (r#"{"error":"","message":"m"}"#, K::Server, None),
        (r#"{"Message":"m"}"#, K::Server, None),
        (r#"{"detail":["m"]}"#, K::Server, None),
    ];
    for (document, kind, code) in cases {
        let info = in_stream_text(document);
        assert_eq!((info.code, info.message.as_str()), (kind, "m"), "{document}");
        assert_eq!(info.provider.unwrap().code.as_deref(), code, "{document}");
    }
    let long = in_stream_text(&openai(&"x".repeat(5_000)));
    assert_eq!(
        (long.message.chars().count(), long.message.ends_with("x…")),
        (MAX_MESSAGE + 1, true),
        "the cut is marked"
    );
}

#[test]
fn a_hint_inside_a_stream_counts_where_asking_again_is_of_use() {
    let delay_of = |kind: &str| {
        let message = r#"{"error":{"message":"Please try again in 2s","type":"KIND"}}"#;
        in_stream_text(&message.replace("KIND", kind)).retry_after_ms
    };
    assert_eq!(delay_of("rate_limit_error"), Some(2_000));
    assert_eq!(delay_of("insufficient_quota"), None);
}

#[test]
fn what_stands_in_the_place_of_events_is_told() {
    let early = ended_early("<title>Bad gateway</title>");
    assert!(early.message.ends_with("whole; beside the events stood: Bad gateway"), "{}", early.message);
    assert!(ended_early("").message.ends_with("whole"));
    assert_eq!(no_stream("{\"a\":").code, K::Network);
    for body in ["{}", "Welcome {", "Welcome"] {
        let info = no_stream(body);
        assert_eq!((info.code, info.message.contains(body)), (K::InvalidRequest, true), "{body}");
    }
}

#[test]
fn errors_inside_a_stream_are_told_by_their_words() {
    let cases = [
        (r#"{"error":{"message":"x","type":"server_error"}}"#, K::Server),
        (r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, K::InvalidRequest),
        (r#"{"error":{"message":"x","code":429}}"#, K::Throttled),
        (r#"{"error":{"message":"x","code":502}}"#, K::Server),
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, K::Overloaded),
        (r#"{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}"#, K::Overloaded),
        (r#"{"error":{"code":499,"message":"x","status":"CANCELLED"}}"#, K::Network),
        (r#"{"error":{"message":"x","code":"insufficient_quota"}}"#, K::Throttled),
        (r#"{"error":"something broke"}"#, K::Server),
        (r#"{"code":"rate_limit_exceeded"}"#, K::Throttled),
        (r#"{"error":{"message":"x","code":"invalid_base64_image"}}"#, K::InvalidRequest),
        (r#"{"error":{"message":"x","code":"image_too_large"}}"#, K::InvalidRequest),
        (r#"{"error":{"message":"x","code":"image_content_policy_violation"}}"#, K::ContentFiltered),
        (r#"{"error":{"message":"x","code":"bio_policy"}}"#, K::ContentFiltered),
        (r#"{"error":{"message":"x","code":"vector_store_timeout"}}"#, K::Server),
    ];
    for (document, kind) in cases {
        assert_eq!(in_stream_text(document).code, kind, "{document}");
    }
    assert_eq!(in_stream_text("Internal Server Error").code, K::Server);
}

#[test]
fn overflows_of_more_servers_are_known_in_their_languages_and_in_streams() {
    let texts = [
        "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
        "Context length 9000 is greater than max_seq_len 8192",
        "Prompt length (5000) exceeds maximum input length (4096). Set truncate_prompt_tokens",
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
        "[original: beyond::dependency::INVALID_ARGUMENT] Cannot truncate to 89998, required 355220",
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with 4096",
        "Prompt tokens too long",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        "the max input characters is 11200",
        "Prompt 超长",
        "输入长度超过模型限制",
        "请求失败：上下文长度超出限制",
        "token 数量超过上限",
        "历史记录和问题的字数太多",
        "入力が長すぎます。",
        "최대 컨텍스트 길이를 초과했습니다",
        "Превышена максимальная длина контекста модели",
        "La longueur de contexte maximale du modèle est dépassée",
    ];
    for text in texts {
        assert_eq!(answer(400, &openai(text)).code, K::ContextOverflow, "{text}");
        assert_eq!(in_stream_text(&openai(text)).code, K::ContextOverflow, "{text}");
    }
    assert_eq!(answer(400, r#"{"error":{"code":"1261","message":"x"}}"#).code, K::ContextOverflow);
}

#[test]
fn a_part_that_is_too_long_is_no_conversation_that_is() {
    let body = |param: &str, code: &str| {
        format!(
            r#"{{"error":{{"message":"Invalid '{param}': string too long. Expected a string with maximum length 1024, but got a string with length 2357 instead.","type":"invalid_request_error","param":"{param}","code":"{code}"}}}}"#
        )
    };
    for param in [
        "tools[0].function.description",
        "tools[12].description",
        "metadata.user",
        "response_format.json_schema.name",
    ] {
        let code = "string_above_max_length";
        assert_eq!(answer(400, &body(param, code)).code, K::InvalidRequest, "{param}");
        // Some gateways leave the field out.
        let text = body(param, code).replace(&format!("\"param\":\"{param}\","), "");
        assert_eq!(answer(400, &text).code, K::InvalidRequest, "{param}");
    }
    for param in ["messages[1].content", "input[0].content[0].text", "instructions"] {
        assert_eq!(answer(400, &body(param, "string_above_max_length")).code, K::ContextOverflow, "{param}");
    }
    let overflow = r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","param":"messages","code":"context_length_exceeded"}}"#;
    assert_eq!(answer(400, overflow).code, K::ContextOverflow);
}

#[test]
fn plans_that_are_spent_are_final_behind_any_status() {
    let spent = [
        (
            429,
            r#"{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。"}}"#,
        ),
        (
            429,
            r#"{"error":{"code":"1310","message":"Weekly/Monthly Limit Exhausted. Your limit will reset at x"}}"#,
        ),
        (429, r#"{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}"#),
        (
            429,
            r#"{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus"}}"#,
        ),
        (
            403,
            r#"{"error":{"code":"AccountOverdueError","message":"The request failed because your account has an overdue balance."}}"#,
        ),
        (403, r#"{"code":30001,"message":"Sorry, your account balance is insufficient"}"#),
        (429, r#"{"error":{"message":"You've hit your usage limit. Upgrade to Pro"}}"#),
        (
            500,
            r#"{"error":{"message":"insufficient user quota","type":"new_api_error","code":"insufficient_user_quota"}}"#,
        ),
    ];
    for (status, body) in spent {
        let info = answer(status, body);
        assert_eq!((info.code, info.retryable), (K::Throttled, false), "{body}");
    }
}

#[test]
fn a_filter_and_a_key_are_told_from_what_fails_and_what_is_spent() {
    let filtered = [
        (400, r#"{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}"#),
        (
            500,
            r#"{"error":{"message":"Output data may contain inappropriate content.","code":"data_inspection_failed"}}"#,
        ),
        (200, r#"{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}"#),
        (
            500,
            r#"{"error":{"message":"sensitive words detected","type":"new_api_error","code":"sensitive_words_detected"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":"SensitiveContentDetected","message":"The request failed because the input text may contain sensitive information."}}"#,
        ),
    ];
    for (status, body) in filtered {
        let info = if status == 200 { in_stream_text(body) } else { answer(status, body) };
        assert_eq!((info.code, info.retryable), (K::ContentFiltered, false), "{body}");
    }
    let keys = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided. Check your plan and billing details","code":"invalid_api_key"}}"#,
        ),
        (401, r#"{"error":{"message":"令牌额度已用尽 or invalid token"}}"#),
        (
            403,
            r#"{"error":{"message":"key is invalid; see your usage limits","type":"authentication_error"}}"#,
        ),
    ];
    for (status, body) in keys {
        assert_eq!(answer(status, body).code, K::Auth, "{body}");
    }
    assert_eq!(
        answer(429, r#"{"error":{"code":"1305","message":"该模型当前访问量过大，请您稍后再试"}}"#).code,
        K::Overloaded
    );
    assert!(answer(429, r#"{"error":{"code":"1302","message":"您当前使用该API的并发数过高"}}"#).retryable);
}
