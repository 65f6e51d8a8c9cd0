//! The tools, one file each: read the arguments, call what the command line calls, answer with the wire's fields.

mod cancel;
mod code;
mod execute;
mod fit;
mod handoff;
mod inbox;
mod list;
mod outcome;
mod person;
mod result;
mod resume;
mod session;
mod skill;
pub mod status;
mod take;
mod validate;

use super::answer::Answer;
use super::args::Args;
use super::call::Call;
use super::error::ToolError;

/// Which tool a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Execute,
    Resume,
    List,
    Status,
    Cancel,
    Validate,
    Inbox,
    Session,
    Handoff,
    Result,
    ToolsSearch,
    CodeRun,
    Skill,
}

impl Which {
    pub fn parse(name: &str) -> Option<Which> {
        Some(match name {
            "sage_workflow_execute" => Which::Execute,
            "sage_workflow_resume" => Which::Resume,
            "sage_workflow_list" => Which::List,
            "sage_workflow_status" => Which::Status,
            "sage_workflow_cancel" => Which::Cancel,
            "sage_workflow_validate" => Which::Validate,
            "sage_inbox" => Which::Inbox,
            "sage_session" => Which::Session,
            "sage_handoff" => Which::Handoff,
            "sage_result" => Which::Result,
            "sage_tools_search" => Which::ToolsSearch,
            "sage_code_run" => Which::CodeRun,
            "sage_skill" => Which::Skill,
            _ => return None,
        })
    }

    pub async fn answer(self, call: &Call, args: Args) -> Result<Answer, ToolError> {
        match self {
            Which::Execute => execute::call(call, args).await,
            Which::Resume => resume::call(call, args).await,
            Which::List => list::call(call, args).await,
            Which::Status => status::call(call, args).await,
            Which::Cancel => cancel::call(call, args).await,
            Which::Validate => validate::call(call, args).await,
            Which::Inbox => inbox::call(call, args).await,
            Which::Session => session::call(call, args).await,
            Which::Handoff => handoff::call(call, args).await,
            Which::Result => result::call(call, args).await,
            Which::ToolsSearch => code::search(call, args).await,
            Which::CodeRun => code::run(call, args).await,
            Which::Skill => skill::call(call, args).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::definitions;

    #[test]
    fn what_is_listed_can_be_called() {
        for tool in definitions::all() {
            assert!(Which::parse(&tool.name).is_some(), "{}", tool.name);
        }
        assert_eq!(Which::parse("sage_workflow"), None);
    }
}
