//! Who is let in, and what clients may take: keys, hosts and origins, time-outs, and how many do something at once.

mod common;

use common::{Client, answer, ask, ask_with, host, key, run_with, settings, start};
use futures_util::StreamExt;
use serde_json::json;
use std::time::Duration;
use supple_studio::{Limits, Opening, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

/// A time that is over soon.
const SOON: Duration = Duration::from_millis(300);

/// Starts a studio with other limits than the usual.
fn limited(scene: &str, limits: Limits) -> String {
    run_with(Opening::scene(scene).unwrap(), Settings { limits, ..settings("test", None) }).0
}

/// Status with which a WebSocket is refused; 101 when it is not.
async fn upgraded(address: &str, path: &str, headers: &[(&'static str, &str)]) -> u16 {
    let mut request = format!("ws://{}{path}", host(address)).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok((_, response)) => response.status().as_u16(),
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_address_is_exchanged_for_a_cookie() {
    let address = start("pendulum");
    let (host, key) = (host(&address), key(&address));
    let (status, head, _) = ask_with(&address, "GET", &format!("/?key={key}&noaa"), "", b"").await;
    assert_eq!(status, 303);
    let line = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    assert_eq!(line("location: "), "/?noaa");
    let port = host.rsplit(':').next().unwrap();
    let cookie = line("set-cookie: ");
    assert_eq!(cookie, format!("supple-{port}={key}; Path=/; HttpOnly; SameSite=Strict"));
    let pair = cookie.split(';').next().unwrap();
    let with_cookie = format!("Cookie: {pair}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(ask_with(&address, "GET", "/take", &with_cookie, b"").await.0, 200);
    assert_eq!(upgraded(&address, "/socket?later", &[("cookie", pair)]).await, 101);
    // A wrong key gives none.
    let (status, head, _) = ask_with(&address, "GET", "/?key=0123", "", b"").await;
    assert!(status == 200 && !head.contains("set-cookie"), "{head}");
    // A program brings it in its address or its head.
    assert_eq!(upgraded(&address, &format!("/socket?key={key}"), &[]).await, 101);
    assert_eq!(upgraded(&address, "/socket", &[("authorization", &format!("Bearer {key}"))]).await, 101);
    // It is none of the words of what is asked for.
    for path in ["/take?", "/baked.glb?", "/baked.glb?fps=30&", "/baked.bvh?to=0.1&"] {
        let (status, _, said) = ask_with(&address, "GET", &format!("{path}key={key}"), "", b"").await;
        let said = String::from_utf8_lossy(&said);
        assert!(status != 403 && !said.contains("unknown field"), "{path}: {status} {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_are_refused_even_with_the_key() {
    let address = start("pendulum");
    let (host, port) = (host(&address), host(&address).rsplit(':').next().unwrap());
    let cookie = format!("supple-{port}={}", key(&address));
    for origin in ["http://example.org", "https://127.0.0.1", "null", "http://127.0.0.1:1"] {
        assert_eq!(upgraded(&address, "/socket", &[("cookie", &cookie), ("origin", origin)]).await, 403, "{origin}");
    }
    assert_eq!(upgraded(&address, "/socket", &[("cookie", &cookie), ("origin", &format!("http://{host}"))]).await, 101);
    for lines in [
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        "Host: example.org\r\n",
        &format!("Host: example.org:{port}\r\n"),
    ] {
        let lines = format!("{lines}Cookie: {cookie}\r\n");
        for path in ["/", "/take", "/rig.toml", "/baked.glb", "/socket", "/compare/0/0"] {
            assert_eq!(ask_with(&address, "GET", path, &lines, b"").await.0, 403, "{path} with {lines}");
        }
        assert_eq!(ask_with(&address, "POST", "/take", &lines, b"x").await.0, 403, "{lines}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_head_and_an_idle_connection_are_let_go() {
    let address = limited("pendulum", Limits { head: SOON, ..Limits::default() });
    // Never a word; half a head; a whole request and then silence.
    for begun in ["", "GET / HTTP/1.1\r\nHost: ", "whole"] {
        let mut stream = TcpStream::connect(host(&address)).await.unwrap();
        let whole = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", host(&address));
        stream.write_all(if begun == "whole" { whole.as_bytes() } else { begun.as_bytes() }).await.unwrap();
        let (status, ..) = answer(stream).await; // until the server closes the connection
        assert_eq!(status == 200, begun == "whole", "{begun}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_let_go() {
    let limits = Limits { body: SOON, rate: 1 << 20, ..Limits::default() };
    let address = limited("pendulum", limits);
    let head = format!(
        "POST /take HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 100000\r\n\r\n",
        host(&address),
        key(&address)
    );
    // Nothing of it comes.
    let mut stream = TcpStream::connect(host(&address)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let (status, _, said) = answer(stream).await;
    assert!(status == 408 && String::from_utf8_lossy(&said).contains("studio/upload"), "{status}");
    // It comes, byte by byte: sending goes on until the server has had enough.
    let mut stream = TcpStream::connect(host(&address)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let dripping = tokio::spawn(async move {
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SOON / 10).await;
        }
    });
    let mut said = vec![0; 12];
    tokio::time::timeout(common::PATIENCE, reader.read_exact(&mut said)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&said), "HTTP/1.1 408");
    dripping.abort();
    // The turn is free again.
    assert_eq!(ask(&address, "POST", "/take", b"no take").await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_let_go() {
    let address = limited("chain:2000", Limits { patience: SOON, ..Limits::default() });
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "step", "count": 400})).await;
    client.frame_where(|frame| frame.step() >= 400).await; // a take of some megabytes, more than buffers hold
    drop(client);
    // Its receive buffer is small: loopback buffers grow to megabytes, and might hold the whole answer.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(host(&address).parse().unwrap()).await.unwrap();
    let head =
        format!("GET /take HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n", host(&address), key(&address));
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.peek(&mut [0]).await.unwrap(); // the answer has begun: it is this client's turn
    // It reads nothing; another one who wants the takes waits for its turn, and gets it.
    assert_eq!(ask(&address, "GET", "/take", b"").await.0, 200);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    let told = String::from_utf8_lossy(&rest);
    let length = told.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().trim().parse::<usize>();
    assert!(rest.len() < length.unwrap(), "the first one was cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_and_sockets_are_bounded() {
    let address = limited("pendulum", Limits { connections: 3, sockets: 2, ..Limits::default() });
    // As many as may be, silent; one more is told.
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(TcpStream::connect(host(&address)).await.unwrap());
    }
    let stream = TcpStream::connect(host(&address)).await.unwrap();
    let (status, _, said) = answer(stream).await;
    assert!(status == 503 && String::from_utf8_lossy(&said).contains("studio/busy"), "{status}");
    // When they go there is room.
    drop(silent);
    let start = std::time::Instant::now();
    while ask_with(&address, "GET", "/", "", b"").await.0 != 200 {
        assert!(start.elapsed() < common::PATIENCE);
    }
    // WebSockets are counted by themselves.
    let by_key = format!("/socket?key={}", key(&address));
    let one = Client::connect(&address).await;
    let _two = Client::connect(&address).await;
    assert_eq!(upgraded(&address, &by_key, &[]).await, 503);
    drop(one);
    while upgraded(&address, &by_key, &[]).await != 101 {
        assert!(start.elapsed() < common::PATIENCE);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_shows_no_sign_of_life_is_closed() {
    let address = limited("pendulum", Limits { silence: Duration::from_secs(2), ..Limits::default() });
    // One who reads answers pings, three within the time, and stays; one who does not is let go meanwhile, and finds the end later.
    let mut dead = Client::connect(&address).await;
    let mut alive = Client::connect(&address).await;
    alive.say(json!({"type": "pause"})).await;
    let mut pings = 0;
    while pings < 5 {
        pings += usize::from(matches!(alive.next().await, Message::Ping(_)));
    }
    let end = tokio::time::timeout(common::PATIENCE, async {
        while let Some(Ok(message)) = dead.0.next().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
        }
    });
    end.await.expect("it was closed");
    alive.say(json!({"type": "rename", "take": 0, "name": "still here"})).await;
    alive.status_where(|status| status["takes"][0]["name"] == "still here").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_hold_no_more_than_one_may() {
    let address = limited("pendulum", Limits { upload: 1 << 20, ..Limits::default() });
    let head = |rest: &str| {
        format!(
            "POST /take HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{rest}\r\n\r\n",
            host(&address),
            key(&address)
        )
    };
    // Too large by its own word, and without one.
    let mut stream = TcpStream::connect(host(&address)).await.unwrap();
    stream.write_all(head("Content-Length: 1048577").as_bytes()).await.unwrap();
    assert_eq!(answer(stream).await.0, 413);
    let mut stream = TcpStream::connect(host(&address)).await.unwrap();
    stream.write_all(head("Transfer-Encoding: chunked").as_bytes()).await.unwrap();
    let piece = [&b"40000\r\n"[..], &vec![0u8; 1 << 18], b"\r\n"].concat();
    for _ in 0..5 {
        let _ = stream.write_all(&piece).await;
    }
    assert_eq!(answer(stream).await.0, 413);
    // While one is being sent, no other is taken. It is being read once the server has asked for its body.
    let mut first = TcpStream::connect(host(&address)).await.unwrap();
    first.write_all(head("Content-Length: 100\r\nExpect: 100-continue").as_bytes()).await.unwrap();
    let mut asked = [0; 25];
    tokio::time::timeout(common::PATIENCE, first.read_exact(&mut asked)).await.expect("its body is asked for").unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    let (status, said) = ask(&address, "POST", "/take", b"no take").await;
    assert!(status == 503 && String::from_utf8_lossy(&said).contains("studio/busy"), "{status}");
    first.write_all(&[b'x'; 100]).await.unwrap();
    assert_eq!(answer(first).await.0, 400, "it is no take");
    assert_eq!(ask(&address, "POST", "/take", b"no take").await.0, 400);
}

/// A frame of a WebSocket that is too long is not waited for, and no memory taken for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_would_be_too_long_ends_the_conversation_at_once() {
    let address = start("pendulum");
    let mut stream = TcpStream::connect(host(&address)).await.unwrap();
    let head = format!(
        "GET /socket?later&key={} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        key(&address),
        host(&address)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; 12];
    stream.read_exact(&mut told).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&told), "HTTP/1.1 101");
    // A text of ten megabytes, masked, of which nothing comes.
    let mut frame = vec![0x81, 0x80 | 127];
    frame.extend((10u64 << 20).to_be_bytes());
    frame.extend([0; 4]);
    stream.write_all(&frame).await.unwrap();
    let end = async { while stream.read(&mut [0; 4096]).await.is_ok_and(|n| n > 0) {} };
    tokio::time::timeout(common::PATIENCE, end).await.expect("it was let go");
}

#[tokio::test(flavor = "multi_thread")]
async fn bakes_are_bounded_and_one_at_a_time() {
    let address = limited("chain:500", Limits::default());
    let mut client = Client::connect(&address).await;
    client.say(json!({"type": "step", "count": 1000})).await;
    client.frame_where(|frame| frame.step() >= 1000).await;
    // While one is made, another one is refused. Who asked for it goes away: it ends, and there is room again.
    let mut first = TcpStream::connect(host(&address)).await.unwrap();
    let head = format!(
        "GET /baked.glb HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        host(&address),
        key(&address)
    );
    first.write_all(head.as_bytes()).await.unwrap();
    // It is heard before what is asked afterwards on a connection that it waits for.
    let start = std::time::Instant::now();
    loop {
        let mut second = TcpStream::connect(host(&address)).await.unwrap();
        second.write_all(head.as_bytes()).await.unwrap();
        let mut told = [0; 12];
        let refused = tokio::time::timeout(SOON, second.read_exact(&mut told)).await;
        if refused.is_ok() && told.ends_with(b"503") {
            break;
        }
        assert!(start.elapsed() < common::PATIENCE, "no bake was refused: {}", String::from_utf8_lossy(&told));
    }
    drop(first);
    let small = limited("pendulum", Limits { bake: 1000, ..Limits::default() });
    let mut client = Client::connect(&small).await;
    client.say(json!({"type": "step", "count": 100})).await;
    client.frame_where(|frame| frame.step() >= 100).await;
    let (status, said) = ask(&small, "GET", "/baked.glb", b"").await;
    assert!(status == 413 && String::from_utf8_lossy(&said).contains("studio/size"), "{status}");
    let start = std::time::Instant::now();
    loop {
        let mut last = TcpStream::connect(host(&address)).await.unwrap();
        last.write_all(head.as_bytes()).await.unwrap();
        let mut told = [0; 12];
        // It is being made: no refusal comes.
        if tokio::time::timeout(SOON, last.read_exact(&mut told)).await.is_err() || told.ends_with(b"200") {
            break;
        }
        assert!(start.elapsed() < common::PATIENCE, "the turn was never free again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_glove_on_the_network_streams_targets_with_the_key() {
    // Listening on all addresses stands for the network; it is reached by another one than 127.0.0.1.
    let settings = Settings { listen: Some("0.0.0.0".parse().unwrap()), ..settings("test", None) };
    let (address, _task) = run_with(Opening::scene("hand").unwrap(), settings);
    let port = host(&address).rsplit(':').next().unwrap();
    let there = format!("127.0.0.2:{port}/?key={}", key(&address));
    assert_eq!(upgraded(&there, "/socket", &[]).await, 403, "without the key");
    assert_eq!(ask_with(&there, "GET", "/take", &format!("Host: studio.example.org:{port}\r\n"), b"").await.0, 403);
    let mut glove = Client::connect(&there).await;
    let pose = json!({"position": [0.2, 0.5, 0.1], "rotation": [0, 0, 0, 1]});
    glove.say(json!({"type": "targets", "poses": {"palm": pose}})).await;
    // What a device streams in is work that only it could do again.
    glove.status_where(|status| status["unsaved"] == true).await;
    glove.frame_where(|frame| frame.position(0)[1] > 0.3).await;
}
