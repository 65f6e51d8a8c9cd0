//! The way to an endpoint. One client per turn, which keeps its connection between the requests of the turn.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use serde_json::Value;

use super::endpoint::Endpoint;
use super::trouble;
use crate::https::{self, Client, reasons};
use crate::outcome::Miss;

#[derive(Debug)]
pub struct Http {
    client: Client,
}

impl Http {
    pub fn new(endpoint: &Endpoint) -> Result<Http, Miss> {
        Ok(Http { client: https::client(&endpoint.url).map_err(Miss::invalid)? })
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
