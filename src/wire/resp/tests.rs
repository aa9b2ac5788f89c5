use proptest::prelude::*;

use super::*;

fn one(buffer: &[u8]) -> Reply<'_> {
    match scan(buffer) {
        Ok(Scan::Reply { reply, used }) if used == buffer.len() => reply,
        other => panic!("{other:?} of {:?}", buffer.escape_ascii().to_string()),
    }
}

const WHOLE: &[&[u8]] = &[
    b"+OK\r\n",
    b"-OOM command not allowed\r\n",
    b":-12\r\n",
    b"$5\r\nhe\r\no\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"_\r\n",
    b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
    b"*0\r\n",
    b"%1\r\n+k\r\n+v\r\n",
    b"~2\r\n:1\r\n:2\r\n",
    b"=7\r\ntxt:abc\r\n",
    b"!9\r\nERR wrong\r\n",
    b",3.25\r\n",
    b"#t\r\n",
    b"(123456789012345678901234567890\r\n",
    b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
    b"|1\r\n+ttl\r\n:5\r\n$2\r\nhi\r\n",
    b"*1\r\n|1\r\n+ttl\r\n:5\r\n$2\r\nhi\r\n",
];

#[test]
fn every_type_is_read() {
    assert_eq!(one(b"$5\r\nhe\r\no\r\n"), Reply::Bulk(b"he\r\no"));
    assert_eq!(one(b"$-1\r\n"), Reply::Null);
    assert_eq!(one(b":-12\r\n"), Reply::Integer(-12));
    assert_eq!(one(b"=7\r\ntxt:abc\r\n"), Reply::Bulk(b"abc"));
    assert_eq!(one(b">1\r\n+x\r\n+OK\r\n"), Reply::Simple(b"OK"));
    assert_eq!(one(b"|1\r\n+ttl\r\n:5\r\n$2\r\nhi\r\n"), Reply::Bulk(b"hi"));
}

#[test]
fn a_reply_split_at_any_byte_is_awaited() {
    for whole in WHOLE {
        one(whole);
        for cut in 0..whole.len() {
            match scan(&whole[..cut]) {
                Ok(Scan::More { need }) => assert!(need > cut && need <= whole.len(), "{need} at {cut}"),
                other => panic!("{other:?} at {cut} of {}", whole.escape_ascii()),
            }
        }
    }
}

#[test]
fn what_is_no_resp_is_refused_at_once() {
    for bad in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"?\r\n",
        b"X",
        b"$-2\r\n",
        b"$99999999999\r\n",
        b"$x\r\n",
        b"$2\r\nabcd",
        b":abc\r\n",
        b"*-7\r\n",
        b"*99999999999\r\n",
        b"*2\r\n$99999999999\r\n",
        b"+OK\n",
        b"\r\n",
        b"\n",
    ] {
        assert!(scan(bad).is_err(), "{}", bad.escape_ascii());
    }
    assert!(scan(&vec![b'+'; LONGEST_LINE]).is_err());
}

#[test]
fn values_own_what_they_read() {
    let (value, used) = Value::parse(b"*2\r\n$1\r\na\r\n%1\r\n+k\r\n#t\r\n").expect("RESP").expect("whole");
    let map = Value::Array(vec![Value::Simple("k".into()), Value::Integer(1)]);
    assert_eq!(value, Value::Array(vec![Value::Bulk(b"a".to_vec()), map]));
    assert_eq!(used, 23);
    let deep = [b"*1\r\n".repeat(100), b":1\r\n".to_vec()].concat();
    assert!(Value::parse(&deep).is_err());
}

#[test]
fn commands_are_arrays_of_bulk_strings() {
    let mut out = Vec::new();
    encode(&[b"SET", b"k\r\n", b""], &mut out);
    assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
}

#[test]
fn an_argument_of_a_known_length_is_an_argument() {
    fn same<const LEN: usize>() {
        let arg = [b'x'; LEN];
        let (mut whole, mut any) = (Vec::new(), Vec::new());
        put_array(&arg, &mut whole);
        put(&arg, &mut any);
        assert_eq!(whole, any);
    }
    same::<10>();
    same::<36>();
    same::<99>();
}

proptest! {
    #[test]
    fn nothing_a_server_sends_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = scan(&bytes);
        let _ = Value::parse(&bytes);
    }

    #[test]
    fn nothing_like_resp_panics(text in "[-+:$*%~>|_,#(=!0-9a\r\n]{0,80}") {
        let _ = scan(text.as_bytes());
        let _ = Value::parse(text.as_bytes());
    }

    #[test]
    fn what_is_encoded_is_read_back(args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..6)) {
        let mut out = Vec::new();
        encode(&args.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut out);
        let expected = Value::Array(args.into_iter().map(Value::Bulk).collect());
        prop_assert_eq!(Value::parse(&out).unwrap(), Some((expected, out.len())));
    }

    #[test]
    fn an_argument_is_the_same_measured_before_or_after(len in 0usize..1200, before in 0usize..10) {
        let (before, arg) = (vec![b'b'; before], vec![b'x'; len]);
        let (mut measured, mut written) = (before.clone(), before);
        put(&arg, &mut measured);
        put_with(&mut written, |out| out.extend_from_slice(&arg));
        prop_assert_eq!(measured, written);
    }
}
