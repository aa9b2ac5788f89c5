//! The figures, and the words for what there is no room for.

use super::means::{hash_memory, key_memory};
use super::*;
use crate::plan::{Surroundings, load};
use crate::scenario::Overrides;

fn plan(text: &str) -> Plan {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.toml");
    std::fs::write(&path, text).expect("a file");
    let surroundings = Surroundings { environment: &|_| None, cores: vec![0] };
    let cases = load(&path, &Overrides::default(), &surroundings).unwrap_or_else(|faults| panic!("{faults}"));
    cases.first().clone()
}

/// The judgement and `check` tell those themselves.
#[test]
fn what_is_told_elsewhere_is_no_warning_here() {
    let room = Room { files: u64::MAX, ports: None, memory: None };
    let text = "target.spawn = { cpus = 'auto' }\nphase = [{ run = 'write' }]\ndataset.value = 'constant'";
    let plan = plan(text);
    assert!(plan.dataset.blind_spot().is_some() && !plan.advice.is_empty());
    assert!(predict(&plan, room).warnings.is_empty());
}

#[test]
fn one_connection_needs_its_files() {
    let plan = plan("target.spawn = {}\nphase = [{ run = 'write' }]");
    let files = files_needed(&plan);
    assert_eq!(files_suffice(&plan, files), Ok(()));
    let what = files_suffice(&plan, files - 1).unwrap_err();
    assert!(what.starts_with("1 connection needs 70 file descriptors, and this process may have 69\n"), "{what}");
}

#[test]
fn connections_of_a_connect_phase_need_files_too() {
    let plan = plan("target.spawn = {}\nphase = [{ run = 'connect', times = 500, concurrency = 200 }]");
    let what = files_suffice(&plan, 100).unwrap_err();
    assert!(what.starts_with("201 connections need ") && what.ends_with("or phase.connect-2.concurrency"), "{what}");
}

#[test]
fn available_memory_is_read_in_bytes() {
    let text = "MemTotal:        8000000 kB\nMemFree:   1 kB\nMemAvailable:    5000000 kB\n";
    assert_eq!(available(text), Some(5_120_000_000));
    for text in ["", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: 99999999999999999999 kB"] {
        assert_eq!(available(text), None, "{text}");
    }
}

#[test]
fn memory_per_key_is_what_was_measured_on_redis_7() {
    for (key, value, bytes) in [
        (36, 36, 144),
        (36, 44, 144),
        (36, 45, 160),
        (36, 256, 416),
        (36, 1000, 1120),
        (36, 10_000, 10_336),
        (36, 31_000, 32_864),
        (36, 100_000, 114_784),
        (10, 12, 80),
    ] {
        assert_eq!(key_memory(key, value, false), bytes, "{key} → {value}");
    }
}

/// Measured as growth of `used_memory` per key on Redis 7.0.15, less the bucket; a small hash to the byte.
#[test]
fn memory_per_hash_is_about_what_was_measured_on_redis_7() {
    for (fields, bytes) in [
        (&[(3, 1); 2][..], 128),
        (&[(6, 36); 2], 208),
        (&[(6, 36); 4], 288),
        (&[(6, 65)], 312),
        (&[(6, 100); 2], 496),
        (&[(6, 1000)], 1256),
    ] {
        let predicted = hash_memory(36, fields);
        assert!((bytes..=bytes * 104 / 100).contains(&predicted), "{fields:?}: {predicted}, not {bytes}");
        assert!(predicted == bytes || fields.iter().any(|&(_, value)| value > 64), "{fields:?}: {predicted}");
    }
}
