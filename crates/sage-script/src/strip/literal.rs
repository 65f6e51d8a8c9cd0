//! A pure literal as JSON: what can be known without running anything.

use oxc::ast::ast::*;
use oxc::span::{GetSpan, Span};
use serde_json::{Map, Number, Value};

/// The value, or the first place that is not a literal.
pub(super) fn value(expression: &Expression<'_>) -> Result<Value, Span> {
    match expression.without_parentheses() {
        Expression::StringLiteral(text) => Ok(Value::String(text.value.to_string())),
        Expression::NumericLiteral(number) => json_number(number.value).ok_or(number.span),
        Expression::BooleanLiteral(flag) => Ok(Value::Bool(flag.value)),
        Expression::NullLiteral(_) => Ok(Value::Null),
        Expression::TemplateLiteral(text) => plain_template(text).map(Value::String).ok_or(text.span),
        Expression::UnaryExpression(minus) if minus.operator == UnaryOperator::UnaryNegation => {
            match value(&minus.argument)? {
                Value::Number(number) => number.as_f64().and_then(|n| json_number(-n)).ok_or(minus.span),
                _ => Err(minus.span),
            }
        }
        Expression::ArrayExpression(list) => list.elements.iter().map(item).collect(),
        Expression::ObjectExpression(object) => object_value(object),
        Expression::TSAsExpression(cast) => value(&cast.expression),
        Expression::TSSatisfiesExpression(cast) => value(&cast.expression),
        other => Err(other.span()),
    }
}

fn item(element: &ArrayExpressionElement<'_>) -> Result<Value, Span> {
    element.as_expression().map_or(Err(element.span()), value)
}

fn object_value(object: &ObjectExpression<'_>) -> Result<Value, Span> {
    let mut map = Map::new();
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else { return Err(property.span()) };
        if property.computed || property.method || property.shorthand || property.kind != PropertyKind::Init {
            return Err(property.span);
        }
        let name = property.key.static_name().ok_or(property.span)?;
        map.insert(name.into_owned(), value(&property.value)?);
    }
    Ok(Value::Object(map))
}

/// Whole numbers stay whole: `2`, not `2.0`.
fn json_number(number: f64) -> Option<Value> {
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    if whole { Some(Value::from(number as i64)) } else { Number::from_f64(number).map(Value::Number) }
}

fn plain_template(text: &TemplateLiteral<'_>) -> Option<String> {
    match (text.quasis.as_slice(), text.expressions.is_empty()) {
        ([only], true) => only.value.cooked.as_ref().map(ToString::to_string),
        _ => None,
    }
}

/// The text of a literal, for names in calls.
pub(super) fn text(expression: &Expression<'_>) -> Option<String> {
    match value(expression).ok()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}
