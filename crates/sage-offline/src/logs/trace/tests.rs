use super::*;

fn told(text: &str) -> Vec<String> {
    let tell = |trace: &Trace| {
        let frame = |frame: &Frame| format!("{}:{} {}", frame.path, frame.line, frame.function);
        let frames: Vec<String> = trace.frames.iter().map(frame).collect();
        format!("{} {}: {} [{}]", trace.line, trace.sort, trace.message, frames.join(", "))
    };
    traces(text).iter().map(tell).collect()
}

// covers: R6
#[test]
fn rust_panics_of_both_forms_with_a_backtrace_and_a_compiler_error() {
    let text = "ok\nthread 'main' (7) panicked at src/pay.rs:10:5:\nindex out of bounds: the len is 3\n\
                stack backtrace:\n   0: core::panic\n             at /rustc/abc/library/core.rs:80:14\n   4: \
                shop::pay\n             at ./src/pay.rs:24:5\nnote: more\nthread 'b' panicked at 'no money', \
                src/b.rs:2:3\n\nerror[E0308]: mismatched types\n  --> src/c.rs:3:5\n";
    assert_eq!(
        told(text),
        [
            "1 Rust panic: index out of bounds: the len is 3 [src/pay.rs:10 , /rustc/abc/library/core.rs:80 \
             core::panic, ./src/pay.rs:24 shop::pay]",
            "9 Rust panic: no money [src/b.rs:2 ]",
            "11 compiler error: [E0308]: mismatched types [src/c.rs:3 ]",
        ]
    );
}

// covers: R6
#[test]
fn python_tracebacks_also_behind_a_prefix() {
    let text = "web | Traceback (most recent call last):\nweb |   File \"/app/shop/a.py\", line 3, in a\nweb |     \
                b()\nweb |   File \"/app/shop/b.py\", line 9, in b\nweb |     raise KeyError(1)\nweb | KeyError: 1\n\
                FAILED tests/test_a.py::test_a - assert 1 == 2\n";
    assert_eq!(
        told(text),
        [
            "0 Python exception: KeyError: 1 [/app/shop/b.py:9 b, /app/shop/a.py:3 a]",
            "6 failed test: test_a: assert 1 == 2 [tests/test_a.py:0 test_a]",
        ]
    );
    assert_eq!(told("Traceback (most recent call last):\n  File \"a.py\", line 1"), Vec::<String>::new());
}

// covers: R6
#[test]
fn javascript_java_and_go() {
    let text = "12:00 Uncaught TypeError: x is not a function\n    at pay (/app/src/pay.ts:3:5)\n    at new Promise \
                (<anonymous>)\n    at async file:///app/src/main.js:9:1\n";
    assert_eq!(
        told(text),
        ["0 JavaScript error: TypeError: x is not a function [/app/src/pay.ts:3 pay, /app/src/main.js:9 ]"]
    );
    let text = "Exception in thread \"main\" java.lang.RuntimeException: outer\n\tat com.shop.Main.main(Main.java:5)\n\
                Caused by: java.lang.IllegalStateException: no money\n\tat com.shop.Pay.take(Pay.java:12)\n\t... 1 more\n";
    assert_eq!(
        told(text),
        [
            "0 Java exception: java.lang.IllegalStateException: no money [com/shop/Pay.java:12 com.shop.Pay.take]"
        ]
    );
    let text = "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/usr/go/panic.go:1 \
                +0x1\nmain.pay(...)\n\t/app/pay.go:12 +0x1d\n\ngoroutine 2 [sleep]:\n--- FAIL: TestPay (0.00s)\n    \
                pay_test.go:12: want 1\n";
    assert_eq!(
        told(text),
        [
            "0 Go panic: assignment to entry in nil map [/app/pay.go:12 main.pay(...)]",
            "9 failed test: TestPay: want 1 [pay_test.go:12 TestPay]",
        ]
    );
}

// covers: R6
#[test]
fn error_lines_without_a_trace_and_what_is_none() {
    let text = "2026-01-02 10:00:00,123 [ERROR] shop: no such order 17\nlevel=error msg=\"cannot connect\"\n\
                INFO ERRORS: 0\nno error here\n";
    assert_eq!(
        told(text),
        ["0 error in a log: shop: no such order 17 []", "1 error in a log: cannot connect []"]
    );
}
