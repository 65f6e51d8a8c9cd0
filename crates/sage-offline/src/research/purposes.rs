//! Packages that do the same: two of one line in a project are worth a question.

use super::dependencies::Package;

/// A purpose and the packages that serve it, of one ecosystem each.
const PURPOSES: &[(&str, &str, &[&str])] = &[
    ("cargo", "HTTP client", &["reqwest", "ureq", "isahc", "attohttpc", "surf", "curl", "minreq"]),
    ("cargo", "dates and times", &["chrono", "time", "jiff"]),
    ("cargo", "logging", &["log", "tracing", "slog"]),
    ("cargo", "command lines", &["clap", "structopt", "argh", "pico-args", "lexopt", "gumdrop"]),
    ("cargo", "async runtime", &["tokio", "async-std", "smol"]),
    ("cargo", "errors with context", &["anyhow", "eyre", "color-eyre", "failure"]),
    ("cargo", "YAML", &["serde_yaml", "serde_yml", "yaml-rust", "yaml-rust2", "saphyr", "saphyr-parser"]),
    ("cargo", "random numbers", &["rand", "fastrand", "oorandom"]),
    ("cargo", "lazy values", &["lazy_static", "once_cell"]),
    (
        "npm",
        "HTTP client",
        &["axios", "node-fetch", "got", "superagent", "request", "undici", "ky", "cross-fetch"],
    ),
    ("npm", "dates and times", &["moment", "dayjs", "date-fns", "luxon", "@js-joda/core"]),
    ("npm", "logging", &["winston", "pino", "bunyan", "log4js", "loglevel"]),
    ("npm", "tests", &["jest", "vitest", "mocha", "ava", "jasmine"]),
    ("npm", "validation", &["zod", "yup", "joi", "ajv", "io-ts", "superstruct", "valibot"]),
    ("npm", "collections", &["lodash", "underscore", "ramda", "lodash-es"]),
    ("npm", "state", &["redux", "mobx", "zustand", "recoil", "jotai"]),
    ("npm", "command lines", &["commander", "yargs", "minimist", "meow", "cac"]),
    ("npm", "web server", &["express", "koa", "fastify", "hapi", "hono"]),
    ("npm", "styles", &["styled-components", "@emotion/react", "tailwindcss"]),
    ("python", "HTTP client", &["requests", "httpx", "aiohttp", "urllib3"]),
    ("python", "dates and times", &["arrow", "pendulum", "python-dateutil"]),
    ("python", "command lines", &["click", "typer", "docopt", "fire"]),
    ("python", "web server", &["flask", "django", "fastapi", "bottle", "tornado", "sanic"]),
    ("python", "validation", &["pydantic", "marshmallow", "cerberus", "attrs"]),
    ("python", "JSON", &["orjson", "ujson", "simplejson"]),
    ("python", "logging", &["loguru", "structlog"]),
    (
        "go",
        "web server",
        &[
            "github.com/gin-gonic/gin",
            "github.com/labstack/echo/v4",
            "github.com/gorilla/mux",
            "github.com/go-chi/chi/v5",
        ],
    ),
    ("go", "logging", &["github.com/sirupsen/logrus", "go.uber.org/zap", "github.com/rs/zerolog"]),
    ("jvm", "JSON", &["gson", "jackson-databind", "moshi"]),
    ("jvm", "HTTP client", &["okhttp", "httpclient", "retrofit"]),
    ("jvm", "tests", &["junit", "testng"]),
];

/// Purposes that are served more than once, with who serves them.
pub(super) fn twice(packages: &[Package]) -> Vec<(&'static str, Vec<&Package>)> {
    let serving = |(ecosystem, purpose, names): &(&str, &'static str, &[&str])| {
        let by: Vec<&Package> = packages
            .iter()
            .filter(|package| package.ecosystem == *ecosystem && names.contains(&package.name.as_str()))
            .collect();
        (by.len() > 1).then_some((*purpose, by))
    };
    PURPOSES.iter().filter_map(serving).collect()
}
