//! `seawall completions`.

use clap::Args;
use clap_complete::Shell;

use crate::failure::Done;
use crate::output::Out;

#[derive(Args)]
pub(crate) struct Completions {
    /// Of which shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, out: &Out) -> Done {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command_line(), "seawall", &mut script);
        out.line(String::from_utf8_lossy(&script).trim_end())
    }
}
