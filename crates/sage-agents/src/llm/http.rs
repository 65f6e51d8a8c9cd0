//! The way to an endpoint: HTTP/1.1, with TLS unless it is on this machine. One client per turn, which keeps its
//! connection between the requests of the turn.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use super::endpoint::Endpoint;
use super::trouble;
use crate::outcome::Miss;

/// A host that does not answer at all.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// A connection whose other end is gone, as after a night with the lid closed, is noticed by this.
const KEEPALIVE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Http {
    pub fn new(endpoint: &Endpoint) -> Result<Http, Miss> {
        let tls = tls(endpoint.url.scheme_str() == Some("https"));
        let tls = tls.map_err(|error| {
            Miss::invalid(format!("no TLS: the certificates of this machine cannot be used: {error}"))
        })?;
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
        Ok(Http { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    pub async fn post(&self, endpoint: &Endpoint, body: &Value) -> Result<Response<Incoming>, Miss> {
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.url.clone();
        let headers = request.headers_mut();
        headers.extend(endpoint.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("sage/", env!("CARGO_PKG_VERSION"))));
        self.client.request(request).await.map_err(|error| {
            let host = endpoint.url.authority().map_or("the endpoint", |host| host.as_str());
            let message = format!("cannot reach {host}: {}", reasons(&error));
            // It will be the same certificate next time.
            if message.contains("invalid peer certificate") {
                return Miss::invalid(format!("{message}; SSL_CERT_FILE can name a file of trusted ones"));
            }
            trouble::broken(message)
        })
    }
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
