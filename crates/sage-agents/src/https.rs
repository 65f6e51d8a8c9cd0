//! The way to others over HTTP/1.1, with TLS unless they are on this machine: models and MCP servers.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self};
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

/// A host that does not answer at all.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// A connection whose other end is gone, as after a night with the lid closed, is noticed by this.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Keeps its connections for as long as it lives.
pub type Client = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// `Err` says why there is no TLS.
pub fn client(url: &Uri) -> Result<Client, String> {
    let tls = tls(url.scheme_str() == Some("https"));
    let tls =
        tls.map_err(|error| format!("no TLS: the certificates of this machine cannot be used: {error}"))?;
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_PATIENCE));
    connector.set_keepalive(Some(KEEPALIVE));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(legacy::Client::builder(TokioExecutor::new()).build(connector))
}

/// Certificates are only looked for where they are needed.
fn tls(needed: bool) -> Result<ClientConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = if needed {
        builder.with_native_roots()?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

/// An address that others may be told secrets at: HTTPS, or this machine. `Err` ends a sentence about it.
pub fn address(given: &str) -> Result<Uri, String> {
    let uri: Uri = given.parse().map_err(|error| format!("is no address: {error}"))?;
    let host = uri.host().ok_or("is no address: it needs https:// and a host")?;
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_local(host) => Ok(uri),
        Some("http") => Err("must begin with https: what is sent would be open to everybody".into()),
        _ => Err("must begin with https".into()),
    }
}

pub fn is_local(host: &str) -> bool {
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An error with everything that it comes from; the first one only says where.
pub fn reasons(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}
