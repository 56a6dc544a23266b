//! Every route is behind the door.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread")]
async fn every_data_route_needs_the_key() {
    let settings = Settings { port: Some(0), ..Settings::default() };
    let studio = Studio::bind(Opening::scene("pendulum").unwrap(), settings).unwrap();
    let (key, host) = (studio.door.key().to_owned(), studio.listener.local_addr().unwrap().to_string());
    let task = tokio::spawn(studio.run());
    let ask = async |method: &str, path: &str, key: &str| {
        let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{key}Content-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let (bearer, old) = (format!("Authorization: Bearer {key}\r\n"), format!("Cookie: supple-1={key}\r\n"));
    // Whatever a route names by its path is 0 here.
    let filled = |path: &str| {
        path.split('/').map(|part| if part.starts_with('{') { "0" } else { part }).collect::<Vec<_>>().join("/")
    };
    let routes = data_routes().map(|(path, _)| filled(path));
    assert!(routes.iter().all(|path| !path.contains('{') && !is_of_page(path)), "{routes:?}");
    for path in routes.iter().map(String::as_str).chain(["/new", "/take/", "//take", "/%74ake"]) {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            for key in ["", old.as_str()] {
                let said = ask(method, path, key).await;
                assert!(said.starts_with("HTTP/1.1 403"), "{method} {path}: {said}");
                assert!(method == "HEAD" || said.contains("studio/key"), "{method} {path}: {said}");
            }
        }
    }
    // The key of a page does not help another site, whatever it asks and by which method.
    for foreign in ["Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", "Origin: http://127.0.0.1:1\r\n"]
    {
        let lines = format!("{bearer}{foreign}");
        for path in routes.iter().map(String::as_str).chain(["/", "/guide", "/docs/guide/studio.html"]) {
            for method in ["GET", "POST"] {
                let said = ask(method, path, &lines).await;
                assert!(said.starts_with("HTTP/1.1 403") && said.contains("studio/origin"), "{method} {path}: {said}");
            }
        }
    }
    // With it they answer.
    for path in &routes {
        let said = [ask("GET", path, &bearer).await, ask("POST", path, &bearer).await];
        assert!(said.iter().all(|said| !said.starts_with("HTTP/1.1 403")), "{path}: {said:?}");
    }
    // The page itself tells nothing, and is served to anybody who may ask this machine.
    for path in ["/", "/guide", "/docs/guide/studio.html"] {
        assert!(!ask("GET", path, "").await.starts_with("HTTP/1.1 403"), "{path}");
    }
    task.abort();
}
