//! An executor and nothing else, for the tests of this crate; real agents re-execute their own program.

fn main() -> std::process::ExitCode {
    executor::main(std::env::args().skip(2))
}
