//! The door: the one place where it is decided whether a request is answered. Every route passes it, the WebSocket too.
//!
//! Three things are asked of a request. Its `Host` must be an address, or `localhost`: the name of a site that was made to point here (DNS
//! rebinding) is none. It must not come from a page of another site, by `Origin` and `Sec-Fetch-Site`. And for all that is not a file of the
//! page it must bring the key, which stands in the address that `supple` prints: as a cookie, which that address is exchanged for, in
//! `Authorization: Bearer KEY`, or as `?key=KEY`. So other sites do not get in, and neither do other users of the machine or of the network.
//!
//! A browser that is started here is told its address by an argument, which every user of the machine can read for as long as the browser runs: that
//! address has a code in place of the key, which is exchanged for the cookie once.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::protocol::refusal;

/// Letters of a key: 32 bytes in hexadecimal.
const LETTERS: usize = 64;

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Door {
    /// Where the server listens.
    listens: SocketAddr,
    key: String,
    /// Lets one browser in, and whether it has.
    code: String,
    code_is_used: AtomicBool,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    code: &'static str,
    text: String,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (StatusCode::FORBIDDEN, refusal(self.code, self.text)).into_response()
    }
}

impl Door {
    /// A door with a new key.
    pub(crate) fn new(listens: SocketAddr) -> Result<Door, std::io::Error> {
        Ok(Door { listens, key: random()?, code: random()?, code_is_used: AtomicBool::new(false) })
    }

    /// The page of this door, with its key, as reached by an address of this machine.
    pub(crate) fn address(&self, ip: IpAddr) -> String {
        format!("http://{}/?key={}", SocketAddr::new(ip, self.listens.port()), self.key)
    }

    /// The same with the code in place of the key: it opens the page once.
    pub(crate) fn address_for_one(&self, ip: IpAddr) -> String {
        format!("http://{}/?key={}", SocketAddr::new(ip, self.listens.port()), self.code)
    }

    /// The key.
    #[cfg(test)]
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether a request may pass. `open`: it asks for a file of the page, which tells nothing.
    pub(crate) fn admit(&self, uri: &Uri, headers: &HeaderMap, open: bool) -> Result<(), Refused> {
        let refused = |code, text: &str| Err(Refused { code, text: text.to_owned() });
        let Some(host) = text(headers, header::HOST) else {
            return refused("studio/host", "the request names no host");
        };
        if !self.is_ours(host) {
            let text = "this server answers to addresses, not to names: open the one that supple printed";
            return refused("studio/host", text);
        }
        let foreign = match headers.get(header::ORIGIN).map(HeaderValue::to_str) {
            None => false,
            Some(Ok(origin)) => origin.strip_prefix("http://") != Some(host),
            Some(Err(_)) => true,
        };
        // Browsers tell on every request whose page asks; `none` is the person, by the address bar.
        let site = headers.get("sec-fetch-site").map(HeaderValue::to_str);
        if foreign || !matches!(site, None | Some(Ok("same-origin" | "none"))) {
            let text = "pages of other sites may not reach the studio: type its address, or copy it from the terminal";
            return refused("studio/origin", text);
        }
        if !open && !self.has_key(uri, headers) {
            let text = "the request has no key, or an old one: open the address that supple printed when it started";
            return refused("studio/key", text);
        }
        Ok(())
    }

    /// The cookie that the key, or the code, in this address is exchanged for, and the address without it.
    pub(crate) fn exchange(&self, uri: &Uri) -> Option<(HeaderValue, String)> {
        let query = uri.query()?;
        let lets_in = |key: &str| self.is_key(key) || (uri.path() == "/" && self.use_code(key));
        if !query.split('&').any(|part| part.strip_prefix("key=").is_some_and(lets_in)) {
            return None;
        }
        let rest: Vec<_> = query.split('&').filter(|part| !part.starts_with("key=")).collect();
        let place = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), rest.join("&")) };
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.key);
        Some((HeaderValue::from_str(&cookie).ok()?, place))
    }

    /// Cookies know no ports: each studio of a machine has one by its own name.
    fn cookie_name(&self) -> String {
        format!("supple-{}", self.listens.port())
    }

    fn has_key(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let by_cookie = cookies.filter(|(known, _)| *known == name).map(|(_, key)| key);
        let by_bearer = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let by_query = uri.query().into_iter().flat_map(|query| query.split('&'));
        let by_query = by_query.filter_map(|part| part.strip_prefix("key="));
        by_cookie.chain(by_bearer).chain(by_query).any(|key| self.is_key(key))
    }

    fn is_key(&self, key: &str) -> bool {
        is_same(key, &self.key)
    }

    /// Whether this is the code, for the first time.
    fn use_code(&self, code: &str) -> bool {
        is_same(code, &self.code) && !self.code_is_used.swap(true, Ordering::Relaxed)
    }

    /// Whether a `Host` is one of ours: an address, with our port, that this server can be reached by. No name but `localhost` is, since
    /// whoever owns a name can make it point here.
    fn is_ours(&self, host: &str) -> bool {
        let ours = |ip: IpAddr| match self.listens.ip() {
            listens if listens.is_unspecified() => true,
            listens if listens.is_loopback() => ip.is_loopback(),
            listens => ip == listens,
        };
        let port = self.listens.port();
        match host.parse::<SocketAddr>() {
            Ok(address) => address.port() == port && ours(address.ip()),
            // Browsers leave out port 80.
            Err(_) if port == 80 && host.parse::<IpAddr>().is_ok_and(ours) => true,
            Err(_) => {
                let local = self.listens.ip().is_unspecified() || self.listens.ip().is_loopback();
                let (name, at) = host.rsplit_once(':').unwrap_or((host, "80"));
                local && name.eq_ignore_ascii_case("localhost") && at.parse() == Ok(port)
            }
        }
    }
}

/// A new key or code.
fn random() -> Result<String, std::io::Error> {
    let mut bytes = [0u8; LETTERS / 2];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that does not depend on where they differ.
fn is_same(told: &str, known: &str) -> bool {
    let differences = |differ: u8, (a, b): (u8, u8)| std::hint::black_box(differ | (a ^ b));
    told.len() == known.len() && told.bytes().zip(known.bytes()).fold(0, differences) == 0
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(listens: &str) -> Door {
        Door::new(listens.parse().unwrap()).unwrap()
    }

    /// What comes of a request for `/take` with these headers.
    fn asked(door: &Door, uri: &str, headers: &[(&'static str, &str)], open: bool) -> Result<(), &'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        door.admit(&uri.parse().unwrap(), &map, open).map_err(|refused| refused.code)
    }

    #[test]
    fn only_addresses_of_this_server_are_hosts() {
        let ours = |listens: &str, host: &str| asked(&door(listens), "/", &[("host", host)], true).is_ok();
        for host in ["127.0.0.1:7411", "localhost:7411", "LOCALHOST:7411", "[::1]:7411"] {
            assert!(ours("127.0.0.1:7411", host), "{host}");
        }
        for host in ["example.org:7411", "example.org", "127.0.0.1", "127.0.0.1:80", "localhost", "10.0.0.1:7411", ""] {
            assert!(!ours("127.0.0.1:7411", host), "{host}");
        }
        for host in ["127.0.0.1.example.org:7411", "localhost.example.org:7411", "localhost:7411@example.org"] {
            assert!(!ours("127.0.0.1:7411", host), "{host}");
        }
        assert!(ours("0.0.0.0:7411", "192.168.1.5:7411") && ours("0.0.0.0:7411", "localhost:7411"));
        assert!(!ours("0.0.0.0:7411", "example.org:7411"));
        assert!(ours("192.168.1.5:7411", "192.168.1.5:7411") && !ours("192.168.1.5:7411", "192.168.1.6:7411"));
        assert!(ours("127.0.0.1:80", "127.0.0.1") && ours("127.0.0.1:80", "localhost"));
        assert!(asked(&door("127.0.0.1:7411"), "/", &[], true).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused_with_the_key_too() {
        let door = door("127.0.0.1:7411");
        let cookie = format!("supple-7411={}", door.key());
        let from = |headers: &[(&'static str, &str)]| {
            let mut all = vec![("host", "127.0.0.1:7411"), ("cookie", cookie.as_str())];
            all.extend_from_slice(headers);
            [false, true].map(|open| asked(&door, "/take", &all, open))
        };
        for origin in ["http://127.0.0.1:8000", "https://127.0.0.1:7411", "https://example.org", "null", "file://"] {
            assert_eq!(from(&[("origin", origin)]), [Err("studio/origin"); 2], "{origin}");
        }
        for site in ["cross-site", "same-site", "", "anything"] {
            assert_eq!(from(&[("sec-fetch-site", site)]), [Err("studio/origin"); 2], "{site}");
        }
        assert_eq!(
            from(&[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7411")])[0],
            Err("studio/origin")
        );
        assert_eq!(from(&[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:7411")]), [Ok(()); 2]);
        assert_eq!(from(&[("sec-fetch-site", "none")]), [Ok(()); 2]);
        assert_eq!(from(&[]), [Ok(()); 2]);
    }

    #[test]
    fn the_key_comes_by_cookie_header_or_address() {
        let door = door("127.0.0.1:7411");
        let key = door.key().to_owned();
        let ask = |uri: &str, name: &'static str, value: &str| {
            asked(&door, uri, &[("host", "127.0.0.1:7411"), (name, value)], false)
        };
        assert_eq!(ask("/take", "cookie", &format!("other=1; supple-7411={key}")), Ok(()));
        assert_eq!(ask("/take", "cookie", &format!("supple-7412={key}")), Err("studio/key"));
        assert_eq!(ask("/take", "authorization", &format!("Bearer {key}")), Ok(()));
        assert_eq!(ask(&format!("/socket?later&key={key}"), "accept", "*/*"), Ok(()));
        let (short, other) = (&key[1..], "0".repeat(LETTERS));
        for wrong in ["", short, other.as_str()] {
            assert_eq!(ask("/take", "authorization", &format!("Bearer {wrong}")), Err("studio/key"));
            assert_eq!(ask(&format!("/take?key={wrong}"), "accept", "*/*"), Err("studio/key"));
        }
        assert_ne!(key, Door::new(door.listens).unwrap().key(), "each studio has a key of its own");
    }

    #[test]
    fn the_address_is_exchanged_for_a_cookie() {
        let door = door("127.0.0.1:7411");
        let key = door.key();
        let exchanged = |uri: &str| door.exchange(&uri.parse().unwrap());
        let (cookie, place) = exchanged(&format!("/?noaa&key={key}&noshadow")).unwrap();
        assert_eq!(place, "/?noaa&noshadow");
        assert_eq!(cookie, format!("supple-7411={key}; Path=/; HttpOnly; SameSite=Strict").as_str());
        assert_eq!(exchanged(&format!("/?key={key}")).unwrap().1, "/");
        assert_eq!(exchanged("/?key=0123"), None);
        assert_eq!(exchanged("/"), None);
    }

    #[test]
    fn the_code_of_a_browser_lets_in_once_and_is_no_key() {
        let door = door("127.0.0.1:7411");
        let address = door.address_for_one("127.0.0.1".parse().unwrap());
        let code = address.strip_prefix("http://127.0.0.1:7411/?key=").unwrap();
        assert_ne!(code, door.key());
        assert_eq!(
            asked(&door, &format!("/take?key={code}"), &[("host", "127.0.0.1:7411")], false),
            Err("studio/key"),
            "it opens the page alone"
        );
        let exchanged = |path: &str| door.exchange(&format!("{path}?key={code}").parse().unwrap());
        assert_eq!(exchanged("/take"), None);
        let (cookie, place) = exchanged("/").unwrap();
        assert_eq!((cookie.to_str().unwrap().contains(door.key()), &*place), (true, "/"));
        assert_eq!(exchanged("/"), None, "whoever reads it later finds it used");
    }
}
