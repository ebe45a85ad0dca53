//! `prefix`: a string that begins with another, which may be empty.

use super::{Op, ignore_case};
use crate::pattern::error::Error;
use crate::pattern::text::{Json, Node};

/// Reads the operand of `prefix`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Op, Error> {
    match &node.value {
        Json::Object(members) => {
            ignore_case::parse_inner(node, members, "prefix").map(Op::PrefixIgnoreCase)
        }
        _ => Ok(Op::Prefix(node.text("prefix")?.into())),
    }
}
