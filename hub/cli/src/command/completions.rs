//! `seawall completions`.

use clap::Args;
use clap_complete::Shell;

use crate::error::CommandResult;
use crate::output::OutputWriter;

#[derive(Args)]
pub(crate) struct Completions {
    /// Target shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, out: &OutputWriter) -> CommandResult {
        let (mut command, mut script) = (crate::command_line(), Vec::new());
        clap_complete::generate(self.shell, &mut command, "seawall", &mut script);
        // There is a `--key` only to be refused with the reason, and shells would offer what is hidden: bash in the list of all
        // options, the others in a line of its own with the help.
        let key = command.get_arguments().find(|arg| arg.get_id() == "key");
        let help = key.and_then(|key| key.get_help()).map(ToString::to_string).unwrap_or_default();
        let script = String::from_utf8_lossy(&script).replace(" --key ", " ");
        let offered: Vec<&str> =
            script.lines().filter(|line| help.is_empty() || !line.contains(&help)).collect();
        out.line(&offered.join("\n"))
    }
}
