//! `suffix`: a string that ends with another, which may be empty.

use super::{Op, ignore_case};
use crate::pattern::error::Error;
use crate::pattern::text::{Json, Node};

/// Reads the operand of `suffix`.
pub(crate) fn parse(node: &Node<'_>) -> Result<Op, Error> {
    match &node.value {
        Json::Object(members) => {
            ignore_case::parse_inner(node, members, "suffix").map(Op::SuffixIgnoreCase)
        }
        _ => Ok(Op::Suffix(node.text("suffix")?.into())),
    }
}
