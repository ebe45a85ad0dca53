//! `exists`: whether there is a value at the path. Objects and lists are none, `null` is one.

use super::Op;
use crate::pattern::error::{Error, Fault};
use crate::pattern::text::{Json, Node};

/// Reads the operand of `exists`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Op, Error> {
    match node.value {
        Json::Bool(present) => Ok(Op::Exists(present)),
        _ => Err(node.fault(Fault::NotABoolean)),
    }
}
