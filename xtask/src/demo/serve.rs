//! A small server of static files, for the demo page and nothing else.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

const FIRST_PORT: u16 = 8080;

/// Listens on the given port; by default on 8080, or on any free port.
pub(super) fn listen(port: Option<u16>) -> Result<TcpListener> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => {
            bind(port).with_context(|| format!("cannot listen on port {port}; `--port 0` takes a free one"))
        }
        None => bind(FIRST_PORT).or_else(|_| bind(0)).context("cannot listen on any port"),
    }
}

/// What is served: the page at `/`, the package at `/pkg/`, llama.cpp at `/wllama/`, and the
/// address of the Worker at `/site.json`.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) page: PathBuf,
    pub(super) package: PathBuf,
    pub(super) engine: PathBuf,
    pub(super) worker: Option<String>,
}

/// Answers for ever, with a thread for each connection.
pub(super) fn serve(listener: &TcpListener, site: &Site) -> ! {
    loop {
        let Ok((stream, _)) = listener.accept() else { continue };
        let site = site.clone();
        // A browser that disconnects half-way is not an error.
        std::thread::spawn(move || drop(answer(stream, &site)));
    }
}

/// Reads one request, writes one response, closes.
fn answer(mut stream: TcpStream, site: &Site) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let Some((method, target)) = read_head(&stream)? else {
        return refuse(&mut stream, "400 Bad Request");
    };
    if method != "GET" && method != "HEAD" {
        return refuse(&mut stream, "405 Method Not Allowed\r\nAllow: GET, HEAD");
    }
    if let (Some(worker), "/site.json") = (&site.worker, target.as_str()) {
        let text = format!("{{ \"worker\": \"{worker}\" }}\n");
        head(&mut stream, "200 OK", "application/json", text.len() as u64)?;
        return if method == "GET" { stream.write_all(text.as_bytes()) } else { Ok(()) };
    }
    let Some(path) = site.file(&target) else {
        return refuse(&mut stream, "404 Not Found");
    };
    let mut file = File::open(&path)?;
    let length = file.metadata()?.len();
    head(&mut stream, "200 OK", media_type(&path), length)?;
    if method == "GET" {
        std::io::copy(&mut file, &mut stream)?;
    }
    Ok(())
}

/// Reads the method and the target of a request. The header fields are read and ignored: if a request is
/// only half read when the connection closes, its response is lost.
fn read_head(stream: &TcpStream) -> std::io::Result<Option<(String, String)>> {
    let mut lines = BufReader::new(stream.take(64 * 1024)).lines();
    let first = match lines.next() {
        Some(line) => line?,
        None => return Err(ErrorKind::UnexpectedEof.into()),
    };
    for line in lines {
        if line?.is_empty() {
            let mut fields = first.split(' ');
            let parts = (fields.next(), fields.next(), fields.next());
            return Ok(match parts {
                (Some(method), Some(target), Some(version)) if version.starts_with("HTTP/1.") => {
                    Some((method.to_owned(), target.to_owned()))
                }
                _ => None,
            });
        }
    }
    Ok(None)
}

fn refuse(stream: &mut TcpStream, status: &str) -> std::io::Result<()> {
    let (_, text) = status.lines().next().and_then(|line| line.split_once(' ')).unwrap_or_default();
    head(stream, status, "text/plain; charset=utf-8", text.len() as u64)?;
    stream.write_all(text.as_bytes())
}

fn head(stream: &mut TcpStream, status: &str, media_type: &str, length: u64) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())
}

impl Site {
    /// Returns the file for the target of a request, if it is inside the three folders.
    fn file(&self, target: &str) -> Option<PathBuf> {
        let path = target.split(['?', '#']).next()?;
        let path = decode(path.strip_prefix('/')?)?;
        let (folder, rest) = match (path.strip_prefix("pkg/"), path.strip_prefix("wllama/")) {
            (Some(rest), _) => (&self.package, rest),
            (_, Some(rest)) => (&self.engine, rest),
            (None, None) => (&self.page, path.as_str()),
        };
        let outside = |part: &str| part.starts_with('.') || part.contains(['\\', ':', '\0']);
        if rest.starts_with('/') || rest.split('/').any(outside) {
            return None;
        }
        let mut file = folder.join(rest);
        if file.is_dir() {
            file.push("index.html");
        }
        // A symbolic link could still lead out.
        let file = file.canonicalize().ok()?;
        (file.is_file() && file.starts_with(folder.canonicalize().ok()?)).then_some(file)
    }
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" | "ts" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Decodes `%41` to `A`; returns nothing for a broken escape.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Serves a site from a temporary folder with a secret beside it, and returns the port.
    fn site(name: &str) -> u16 {
        let folder = std::env::temp_dir().join(format!("xtask-demo-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("page/sub")).unwrap();
        fs::create_dir_all(folder.join("package/entry")).unwrap();
        fs::write(folder.join("page/index.html"), "<p>hello").unwrap();
        fs::write(folder.join("page/a b.css"), "p{}").unwrap();
        fs::write(folder.join("page/.hidden"), "hidden").unwrap();
        fs::write(folder.join("package/entry/web.js"), "export {}").unwrap();
        fs::write(folder.join("package/turnwheel.wasm"), b"\0asm").unwrap();
        fs::write(folder.join("secret.txt"), "secret").unwrap();
        #[cfg(unix)]
        let _ = std::os::unix::fs::symlink(folder.join("secret.txt"), folder.join("page/link.txt"));
        fs::write(folder.join("page/site.json"), r#"{ "worker": null }"#).unwrap();
        fs::create_dir_all(folder.join("engine/wasm")).unwrap();
        fs::write(folder.join("engine/wasm/wllama.wasm"), b"\0asm").unwrap();
        let worker = (name == "worker").then(|| "http://127.0.0.1:1".to_owned());
        let [page, package, engine] = ["page", "package", "engine"].map(|name| folder.join(name));
        let site = Site { page, package, engine, worker };
        let listener = listen(Some(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || serve(&listener, &site));
        port
    }

    fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(port: u16, target: &str) -> String {
        ask(port, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    #[test]
    fn the_page_and_the_package_are_served_with_their_types() {
        let port = site("types");
        for (target, media_type, body) in [
            ("/", "text/html; charset=utf-8", "<p>hello"),
            ("/?model=x#top", "text/html; charset=utf-8", "<p>hello"),
            ("/a%20b.css", "text/css; charset=utf-8", "p{}"),
            ("/pkg/entry/web.js", "text/javascript; charset=utf-8", "export {}"),
            ("/pkg/turnwheel.wasm", "application/wasm", "\0asm"),
            ("/wllama/wasm/wllama.wasm", "application/wasm", "\0asm"),
        ] {
            let answer = get(port, target);
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{target}: {answer}");
            assert!(answer.contains(&format!("Content-Type: {media_type}\r\n")), "{target}: {answer}");
            assert!(answer.contains("Cache-Control: no-store\r\n"), "{target}: {answer}");
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{target}: {answer}");
        }
    }

    #[test]
    fn the_page_is_told_where_its_worker_is_if_there_is_one() {
        let body = |port| get(port, "/site.json").rsplit("\r\n\r\n").next().unwrap_or_default().to_owned();
        assert_eq!(body(site("worker")), "{ \"worker\": \"http://127.0.0.1:1\" }\n");
        assert_eq!(body(site("no-worker")), "{ \"worker\": null }");
    }

    #[test]
    fn nothing_outside_the_folders_is_served() {
        let port = site("outside");
        for target in [
            "/../secret.txt",
            "/%2e%2e/secret.txt",
            "/..%2fsecret.txt",
            "/pkg/../../secret.txt",
            "/pkg/%2e%2e/page/index.html",
            "/sub/..\\..\\secret.txt",
            "//etc/passwd",
            "/pkg//etc/passwd",
            "/wllama/../secret.txt",
            "/link.txt",
            "/.hidden",
            "/nowhere",
            "/sub",
            "/%zz",
            "/%00",
            "secret.txt",
        ] {
            let answer = get(port, target);
            assert!(answer.starts_with("HTTP/1.1 404 "), "{target}: {answer}");
        }
    }

    #[test]
    fn head_has_the_length_and_no_body() {
        let answer = ask(site("head"), "HEAD / HTTP/1.1\r\n\r\n");
        assert!(answer.contains("Content-Length: 8\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    }

    #[test]
    fn other_methods_and_other_protocols_are_refused() {
        let port = site("refused");
        assert!(
            ask(port, "POST / HTTP/1.1\r\n\r\n")
                .starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n")
        );
        assert!(ask(port, "hello\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
    }
}
