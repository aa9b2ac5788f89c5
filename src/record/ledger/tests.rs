use super::*;

fn after(base: Base, fates: &[Fate]) -> Ledger {
    let mut ledger = Ledger::new(100, base);
    let first = match base {
        Base::Empty => 1,
        Base::Existing(version) | Base::Several(version) => version + 1,
    };
    for (pass, fate) in fates.iter().enumerate() {
        ledger.begin(first + pass as Version);
        ledger.set(70, first + pass as Version, *fate);
    }
    ledger
}

fn other(version: Version) -> Found {
    Found::Value(Reading::OtherVersion(version))
}

#[test]
fn a_missing_key_is_lost_only_if_it_was_acknowledged() {
    use Fate::*;
    let missing = |fates: &[Fate]| after(Base::Empty, fates).judge(70, 0, Found::Missing);
    assert_eq!(missing(&[Acknowledged]), Class::Lost);
    assert_eq!(missing(&[Acknowledged, Unknown]), Class::Lost);
    for fates in [&[NotSent][..], &[Refused], &[Unknown], &[]] {
        assert_eq!(missing(fates), Class::Absent, "{fates:?}");
    }
    assert_eq!(after(Base::Empty, &[Acknowledged]).judge(71, 0, Found::Missing), Class::Absent);
}

#[test]
fn old_and_new_are_right_after_an_unknown_write_and_only_then() {
    use Fate::*;
    for (second, class) in
        [(Unknown, Class::Matched), (Refused, Class::Matched), (NotSent, Class::Matched), (Acknowledged, Class::Stale)]
    {
        assert_eq!(after(Base::Empty, &[Acknowledged, second]).judge(70, 0, other(1)), class, "{second:?}");
    }
    // Two versions back, with an acknowledged one between.
    assert_eq!(after(Base::Empty, &[Acknowledged, Acknowledged, Unknown]).judge(70, 0, other(1)), Class::Stale);
    assert_eq!(after(Base::Existing(4), &[Unknown]).judge(70, 0, other(4)), Class::Matched);
    assert_eq!(after(Base::Existing(4), &[Unknown]).judge(70, 0, other(3)), Class::Stale);
    assert_eq!(after(Base::Empty, &[Acknowledged]).judge(70, 0, other(9)), Class::Foreign);
}

#[test]
fn what_may_still_arrive_is_undecided() {
    let mut ledger = after(Base::Empty, &[Fate::Acknowledged, Fate::Unknown]);
    ledger.set_unsettled(true);
    assert_eq!(ledger.judge(70, 0, other(1)), Class::Undecided);
    assert_eq!(ledger.judge(70, 0, Found::Value(Reading::Matched)), Class::Matched);
    ledger.set_unsettled(false);
    assert_eq!(ledger.judge(70, 0, other(1)), Class::Matched);
    let mut ledger = after(Base::Empty, &[Fate::Unknown]);
    ledger.set_unsettled(true);
    assert_eq!(ledger.judge(70, 0, Found::Missing), Class::Undecided);
}

#[test]
fn a_verify_only_run_expects_the_version_that_it_found() {
    let ledger = Ledger::new(10, Base::Existing(3));
    assert_eq!(ledger.expected(0), 3);
    assert_eq!(ledger.judge(1, 0, Found::Missing), Class::Absent);
    assert_eq!(ledger.judge(1, 0, other(2)), Class::Stale);
}

#[test]
fn a_key_that_the_last_pass_did_not_reach_is_expected_as_it_was() {
    let mut ledger = after(Base::Empty, &[Fate::Acknowledged]);
    ledger.begin(2);
    for (fate, expected) in
        [(Fate::NotSent, 1), (Fate::Refused, 1), (Fate::Unknown, 2), (Fate::Acknowledged, 2), (Fate::Refused, 1)]
    {
        ledger.set(70, 2, fate);
        assert_eq!(ledger.expected(70), expected, "{fate:?}");
    }
    // Nor is any other key, until each of them is acknowledged.
    assert_eq!(ledger.expected(3), 2, "nobody ever wrote it");
    (0..100).for_each(|slot| ledger.set(slot, 2, Fate::Acknowledged));
    assert!((0..100).all(|slot| ledger.expected(slot) == 2));
    let mut fresh = Ledger::new(100, Base::Existing(7));
    fresh.begin(8);
    assert_eq!(fresh.expected(5), 7);
}

#[test]
fn neighbours_keep_their_fates() {
    let mut ledger = Ledger::new(100, Base::Empty);
    ledger.begin(1);
    let fates = [Fate::Acknowledged, Fate::Refused, Fate::Unknown, Fate::NotSent];
    for slot in 0..100 {
        ledger.set(slot, 1, fates[slot as usize % 4]);
    }
    for slot in 0..100 {
        assert_eq!(ledger.passes[0].get(slot), fates[slot as usize % 4]);
    }
    ledger.set(33, 1, Fate::NotSent);
    assert_eq!(ledger.passes[0].get(33), Fate::NotSent);
}

#[test]
fn whatever_version_earlier_mixes_left_is_right_until_the_key_is_written() {
    let passes = after(Base::Several(9), &[Fate::Refused]);
    let mut versions = after(Base::Several(9), &[]);
    versions.begin_versions();
    for ledger in [&passes, &versions] {
        for version in [1, 5, 12] {
            assert_eq!(ledger.judge(70, 9, other(version)), Class::Matched);
        }
        assert_eq!(ledger.judge(70, 9, Found::Missing), Class::Absent);
    }
    assert_eq!(versions.send(70, 0), 10);
    versions.set(70, 10, Fate::Acknowledged);
    assert_eq!(versions.judge(70, 10, other(5)), Class::Stale);
    assert_eq!(versions.judge(71, 9, other(5)), Class::Matched, "a neighbour");
    assert_eq!(after(Base::Several(9), &[Fate::Acknowledged]).judge(70, 0, other(5)), Class::Stale);
}

#[test]
fn versions_key_by_key_go_on_from_what_the_passes_knew() {
    use Fate::*;
    for fates in
        [&[Acknowledged][..], &[Acknowledged, Unknown], &[Acknowledged, Refused], &[Unknown], &[Unknown, Refused]]
    {
        let passes = after(Base::Empty, fates);
        let mut versions = passes.clone();
        versions.begin_versions();
        for found in [Found::Missing, other(1), other(2), other(3)] {
            // What matched the version of the last pass is told by the driver, not here.
            if found != other(passes.expected(70)) && found != other(versions.expected(70)) {
                let asked = versions.expected(70);
                assert_eq!(versions.judge(70, asked, found), passes.judge(70, asked, found), "{fates:?} {found:?}");
            }
        }
    }
    let mut versions = after(Base::Existing(4), &[]);
    versions.begin_versions();
    assert_eq!((versions.expected(3), versions.send(3, 0)), (4, 5));
    assert_eq!(versions.judge(3, 4, Found::Missing), Class::Absent);
}
