//! Reading: lists of runs, and whatever a person asks in SQL.

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use serde_json::Value;

use crate::{History, HistoryError, RunRow};

/// Names of the columns, and the rows.
pub type Answer = (Vec<String>, Vec<Vec<Value>>);

impl History {
    /// All runs, newest first.
    pub fn runs(&self) -> Result<Vec<RunRow>, HistoryError> {
        let text = format!("SELECT {} FROM runs ORDER BY id DESC", RunRow::COLUMNS);
        let mut statement = self.db.prepare(&text)?;
        let rows = statement.query_map([], RunRow::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Answers one query. It can change nothing and read no other file.
    pub fn sql(&self, text: &str) -> Result<Answer, HistoryError> {
        let failed = |error: rusqlite::Error| HistoryError::Query(error.to_string());
        self.db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(failed)?;
        self.db.pragma_update(None, "query_only", true).map_err(failed)?;
        let mut statement = self.db.prepare(text).map_err(failed)?;
        if !statement.readonly() {
            return Err(HistoryError::Query("it would change the history".into()));
        }
        let columns: Vec<String> = statement.column_names().map(str::to_string).collect();
        let mut rows = statement.query([]).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..columns.len()).map(|column| row.get_ref(column).map(cell));
            found.push(cells.collect::<Result<Vec<Value>, _>>().map_err(failed)?);
        }
        Ok((columns, found))
    }
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()).into(),
    }
}
