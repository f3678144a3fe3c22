#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seawall_fuzz::rendering::check(bytes));
