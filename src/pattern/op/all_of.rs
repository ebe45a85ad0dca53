//! `all-of`, beyond EventBridge: several tests that one and the same value must pass.

use super::Op;
use crate::pattern::error::{Error, Fault};
use crate::pattern::limits::Limits;
use crate::pattern::text::{Json, Node};

const NAME: &str = "all-of";

/// Reads the operand of `all-of`: a list of match expressions other than `exists` and `all-of`.
pub(crate) fn parse(node: &Node<'_>, limits: &Limits) -> Result<Op, Error> {
    if !limits.extensions {
        return Err(node.fault(Fault::Extension { name: NAME }));
    }
    let Json::Array(members) = &node.value else {
        return Err(node.fault(Fault::AllOfNotAList));
    };
    if members.is_empty() {
        return Err(node.fault(Fault::EmptyArray));
    }
    let tests: Result<Box<[Op]>, Error> = members
        .iter()
        .enumerate()
        .map(|(index, member)| {
            parse_member(member, limits).map_err(|error| error.under(&index.to_string()))
        })
        .collect();
    Ok(Op::AllOf(tests?))
}

fn parse_member(node: &Node<'_>, limits: &Limits) -> Result<Op, Error> {
    match Op::parse(node, limits)? {
        Op::Exists(_) | Op::AllOf(_) => Err(node.fault(Fault::AllOfMember)),
        op => Ok(op),
    }
}
