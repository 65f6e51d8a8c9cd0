//! Sandboxed TypeScript: code mode and code-first workflows.
