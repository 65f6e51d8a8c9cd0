//! The `foreign` adapter: orders and reports are files and wakes, and nobody is started.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sage_core::policy::FailureClass;
use sage_core::port::{
    Asks, BoxFuture, Permission, PermissionAsk, Questions, Report, ReportKind, Stop, Wakes,
};
use sage_core::template::Kind;
use serde_json::{Value, json};

use crate::bench::{Bench, until};

/// An inbox in memory.
#[derive(Clone, Debug)]
struct Pigeonhole {
    dir: PathBuf,
    wakes: Arc<Mutex<Vec<(String, Report)>>>,
    /// The last report from before the order; others that are there count as quick answers to it.
    old: Arc<Mutex<Option<String>>>,
}

impl Wakes for Pigeonhole {
    fn orders(&self) -> PathBuf {
        self.dir.join("orders")
    }

    fn reports(&self) -> PathBuf {
        self.dir.join("new")
    }

    fn last(&self, _session: &str) -> BoxFuture<'static, Result<Option<String>, String>> {
        Box::pin(std::future::ready(Ok(self.old.lock().unwrap().clone())))
    }

    fn next(&self, session: &str, after: Option<&str>) -> BoxFuture<'static, Result<Report, String>> {
        let (session, after, wakes) = (session.to_string(), after.map(str::to_string), self.wakes.clone());
        Box::pin(async move {
            loop {
                let own: Vec<Report> = {
                    let wakes = wakes.lock().unwrap();
                    wakes.iter().filter(|(of, _)| *of == session).map(|(_, report)| report.clone()).collect()
                };
                let known = own.iter().position(|report| Some(&report.id) == after.as_ref());
                if let Some(report) = own.into_iter().nth(known.map_or(0, |known| known + 1)) {
                    return Ok(report);
                }
                tokio::time::sleep(std::time::Duration::from_millis(3)).await;
            }
        })
    }
}

impl Pigeonhole {
    fn drop_report(&self, session: &str, id: &str, kind: ReportKind, summary: &str, result: Option<Value>) {
        let (id, summary, files) = (id.to_string(), summary.to_string(), vec!["a.txt".to_string()]);
        self.wakes.lock().unwrap().push((session.into(), Report { id, kind, summary, files, result }));
    }
}

fn foreign() -> (Bench, Pigeonhole) {
    let mut bench = Bench::new(Kind::Agent, json!({"prompt": "write a.txt"}));
    bench.call.agent = Some("foreign".into());
    bench.call.session = Some("person".into());
    bench.config.sessions = Some(bench.path(".sessions"));
    let inbox = Pigeonhole { dir: bench.path("inbox"), wakes: Arc::default(), old: Arc::default() };
    bench.config.wakes = Some(Arc::new(inbox.clone()));
    (bench, inbox)
}

const ORDER: &str = "inbox/orders/person.md";

// covers: S8
#[tokio::test]
async fn an_order_is_a_file_and_its_report_the_result() {
    let (bench, inbox) = foreign();
    let story = async {
        until("the order", || bench.path(ORDER).exists()).await;
        let order = bench.read(ORDER);
        for part in [
            "session_id: \"person\"",
            "step: \"build/step[2]\"",
            "feature: \"login-page\"",
            "\nwrite a.txt\n",
        ] {
            assert!(order.contains(part), "{part}: {order}");
        }
        assert!(order.contains(&format!("report_to: \"{}\"", bench.path("inbox/new").display())));
        inbox.drop_report("somebody", "0", ReportKind::Complete, "not mine", None);
        inbox.drop_report("person", "1", ReportKind::Finding, "it is large", None);
        until("the finding", || bench.activity().contains("it is large")).await;
        inbox.drop_report("person", "2", ReportKind::Complete, "written", None);
    };
    let result = bench.run_with(story).await.succeeded();
    assert_eq!(result, json!({"summary": "written", "files": ["a.txt"], "status": "complete"}));
    assert!(!bench.path(ORDER).exists(), "nobody shall begin with it");

    // Other work of the same session waits for another report, and reads on where it was.
    let mut bench = bench;
    bench.call.key = "other".into();
    bench.call.params.insert("prompt".into(), json!("write b.txt"));
    let story = async {
        until("the second order", || bench.read(ORDER).contains("write b.txt")).await;
        assert!(bench.read(ORDER).contains("write a.txt"));
        inbox.drop_report("person", "3", ReportKind::Complete, "again", None);
    };
    assert_eq!(bench.run_with(story).await.succeeded()["summary"], "again");
}

// covers: S8, R5
#[tokio::test]
async fn a_report_that_came_while_sage_was_dead_is_found() {
    let (mut bench, inbox) = foreign();
    let owner = bench.start();
    let story = async {
        until("the order", || bench.path(ORDER).exists()).await;
    };
    tokio::select! {
        _ = owner => panic!("nobody has reported"),
        () = story => {}
    }
    let before = bench.read(ORDER);
    assert!(!before.is_empty(), "whoever works on it still has it");
    inbox.drop_report("person", "1", ReportKind::Complete, "done", None);
    bench.call.attempt = 2;
    bench.call.unknown = true;
    assert_eq!(bench.run().await.succeeded()["summary"], "done");
}

/// A clone can bring a report along.
// covers: S8, R17
#[tokio::test]
async fn a_report_that_was_there_before_the_order_answers_nothing() {
    let (bench, inbox) = foreign();
    inbox.drop_report("person", "0", ReportKind::Complete, "approved, says the clone", None);
    *inbox.old.lock().unwrap() = Some("0".into());
    let story = async {
        until("the order", || bench.path(ORDER).exists()).await;
        inbox.drop_report("person", "1", ReportKind::Complete, "looked at it", None);
    };
    assert_eq!(bench.run_with(story).await.succeeded()["summary"], "looked at it");
}

// covers: S8
#[tokio::test]
async fn failures_are_told_apart() {
    let (bench, inbox) = foreign();
    inbox.drop_report("person", "1", ReportKind::Failed, "the disk is full", None);
    bench.run().await.failed(FailureClass::Failed).says("reported: the disk is full");

    let (bench, _inbox) = foreign();
    bench.timeout(50).run().await.failed(FailureClass::Timeout).says("nobody has reported");
    let (bench, _inbox) = foreign();
    let stop = async {
        until("the order", || bench.path(ORDER).exists()).await;
        bench.cx.stop.set(Stop::Graceful);
    };
    bench.run_with(stop).await.stopped();
    assert!(!bench.path(ORDER).exists());
    let (mut bench, _inbox) = foreign();
    bench.config.wakes = None;
    bench.run().await.failed(FailureClass::Invalid).says("switched off");
}

#[tokio::test]
async fn a_schema_asks_for_a_result() {
    let asked = |result: Option<Value>, summary: &str| {
        let (mut bench, inbox) = foreign();
        bench.call.schema = Some(json!({"type": "object"}));
        inbox.drop_report("person", "1", ReportKind::Complete, summary, result);
        bench
    };
    assert_eq!(asked(Some(json!({"a": 1})), "ok").run().await.succeeded(), json!({"a": 1}));
    assert_eq!(asked(None, "```\n{\"a\": 2}\n```").run().await.succeeded(), json!({"a": 2}));
    asked(None, "ok").run().await.failed(FailureClass::Invalid).says("no `result`");
}

struct Clerk(Permission);

impl Asks for Clerk {
    fn ask(&self, ask: PermissionAsk) -> BoxFuture<'static, Permission> {
        assert_eq!(ask.input["question"], "which port?");
        Box::pin(std::future::ready(self.0.clone()))
    }
}

// covers: S8
#[tokio::test]
async fn whoever_is_blocked_gets_an_answer_in_the_order() {
    let answers = |permission: Permission| {
        let (mut bench, inbox) = foreign();
        bench.cx.questions = Questions::new(Arc::new(Clerk(permission)));
        inbox.drop_report("person", "1", ReportKind::Blocked, "which port?", None);
        (bench, inbox)
    };
    let (bench, inbox) = answers(Permission::Allow { input: Some(json!({"answer": "port 80"})) });
    let story = async {
        until("the answer", || bench.read(ORDER).contains("> which port?\n\nport 80")).await;
        inbox.drop_report("person", "2", ReportKind::Complete, "on port 80", None);
    };
    assert_eq!(bench.run_with(story).await.succeeded()["summary"], "on port 80");
    let (bench, _inbox) = answers(Permission::Deny { message: "none".into() });
    bench.run().await.failed(FailureClass::Failed).says("blocked: which port?; answered: none");
}
