//! Connections: how many there are, how long they may take, and how much they may hold.
//!
//! A client that sends its request slowly, sends nothing, or takes nothing is let go; what it held is free again. See [`Limits`].

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use futures_util::StreamExt;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time, WebSockets not counted. One more is answered with status 503.
    pub connections: usize,
    /// WebSockets at a time.
    pub sockets: usize,
    /// A request must have told its head after this time, also one that follows another on the same connection.
    pub head: Duration,
    /// A body may take this time, and more as it comes: see `rate`.
    pub body: Duration,
    /// Bytes a second that a body must come at in the long run.
    pub rate: u64,
    /// Who takes nothing of an answer for so long is let go.
    pub patience: Duration,
    /// A WebSocket that shows no sign of life for so long is closed; it is asked for one three times within it.
    pub silence: Duration,
    /// The largest file that may be opened \[bytes\]. One is opened at a time.
    pub upload: usize,
    /// What a bake may record \[bytes\]. One is made at a time.
    pub bake: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            sockets: 32,
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            rate: 64 << 10,
            patience: Duration::from_secs(20),
            silence: Duration::from_secs(60),
            upload: 1 << 30,
            bake: 1 << 30,
        }
    }
}

/// Serves until the future is dropped, and every connection with it.
pub(crate) async fn serve(listener: TcpListener, app: Router, limits: Limits) {
    let free = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match free.clone().try_acquire_owned() {
                    Ok(permit) => _ = connections.spawn(converse(stream, app.clone(), limits, permit)),
                    Err(_) => turn_away(&stream),
                },
                // Too many open files, mostly: what is open goes on, and the next is tried in a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, app: Router, limits: Limits, _permit: OwnedSemaphorePermit) {
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(Patient { stream, patience: limits.patience, stuck: None });
    let service = TowerToHyperService::new(app);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(64 << 10);
    let _ = builder.serve_connection(io, service).with_upgrades().await; // a connection that broke is nobody's fault
}

/// Says that there are too many connections, if that can be said at once.
fn turn_away(stream: &TcpStream) {
    let text = "there are too many connections to the studio: close some [studio/busy]\n";
    let length = text.len();
    let head = format!("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    let _ = stream.try_write(format!("{head}{text}").as_bytes());
}

/// A stream whose other side must take what is written to it.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// Runs while nothing can be written.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    /// What came of a write; one that waits for too long fails.
    fn judge<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stuck = None;
            return result;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(result, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(result, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    TooLarge,
    TooSlow,
    Broken,
}

impl BodyFault {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            BodyFault::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            BodyFault::TooSlow => StatusCode::REQUEST_TIMEOUT,
            BodyFault::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body of up to `most` bytes, which must come at the rate that is asked for.
pub(crate) async fn read_body(request: Request<Body>, most: usize, limits: Limits) -> Result<Vec<u8>, BodyFault> {
    let told = request.headers().get(axum::http::header::CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if told.is_some_and(|length| length > most) {
        return Err(BodyFault::TooLarge);
    }
    let start = Instant::now();
    let mut bytes = Vec::new(); // what was told is not believed: memory is taken as it is needed
    let mut stream = request.into_body().into_data_stream();
    loop {
        let due = start + limits.body + Duration::from_secs_f64(bytes.len() as f64 / limits.rate as f64);
        let piece = tokio::time::timeout_at(due, stream.next()).await.map_err(|_| BodyFault::TooSlow)?;
        let Some(piece) = piece else { return Ok(bytes) };
        let piece = piece.map_err(|_| BodyFault::Broken)?;
        if bytes.len() + piece.len() > most {
            return Err(BodyFault::TooLarge);
        }
        bytes.extend_from_slice(&piece);
    }
}

/// A body that holds a permit until it is sent or given up. Its length is to be told in the headers.
pub(crate) fn held_body(bytes: Vec<u8>, permit: OwnedSemaphorePermit) -> Body {
    const PIECE: usize = 256 << 10;
    let pieces = futures_util::stream::unfold((Bytes::from(bytes), permit), |(mut rest, permit)| async move {
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(PIECE.min(rest.len()));
        Some((Ok::<_, io::Error>(piece), (rest, permit)))
    });
    Body::from_stream(pieces)
}
