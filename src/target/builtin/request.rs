//! Requests as clients send them, found in place in a read buffer. No I/O.

use std::ops::Range;

/// What stands at the head of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole request, which may be empty; its arguments are where `parse` was told to put them.
    Whole {
        /// Bytes that it took.
        used: usize,
    },
    /// It goes on; the buffer must hold at least so many bytes before another look makes sense.
    More {
        /// Bytes from the buffer's head.
        need: usize,
    },
}

/// The bytes are no request: what was expected. Nobody knows where the next one would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Most arguments of a request, as in Redis.
const MOST_ARGS: usize = 1 << 20;
/// Longest argument: Redis' `proto-max-bulk-len`.
const LONGEST_ARG: usize = 512 << 20;
/// Longest request in one line, as in Redis.
const LONGEST_LINE: usize = 64 * 1024;
/// Digits of either.
const MOST_DIGITS: usize = 10;

/// The arguments of a request, the command's name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    at: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// Those that [`parse`] has found in `bytes`.
    pub fn new(bytes: &'a [u8], at: &'a [Range<usize>]) -> Self {
        Self { bytes, at }
    }

    /// How many there are, the command's name included.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// One of them; empty if there are not so many.
    pub fn get(&self, number: usize) -> &'a [u8] {
        self.at.get(number).map_or(&[], |at| &self.bytes[at.clone()])
    }

    /// One of them is this word, in capitals or not.
    pub fn is(&self, number: usize, word: &str) -> bool {
        self.get(number).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// Looks for a whole request at the head of `buffer`, and puts the places of its arguments into `args`.
///
/// # Errors
/// The bytes are no request.
pub fn parse(buffer: &[u8], args: &mut Vec<Range<usize>>) -> Result<Found, Malformed> {
    args.clear();
    let more = |need| Ok(Found::More { need });
    if buffer.first().is_some_and(|first| *first != b'*') {
        return words(buffer, args);
    }
    let Some((count, mut at)) = number(buffer, 0, b'*', MOST_ARGS)? else { return more(buffer.len() + 1) };
    for _ in 0..count {
        let Some((len, start)) = number(buffer, at, b'$', LONGEST_ARG)? else { return more(buffer.len() + 1) };
        let end = start + len;
        match buffer.get(end..end + 2) {
            None => return more(end + 2),
            Some(b"\r\n") => args.push(start..end),
            Some(_) => return Err(Malformed("an argument as long as it says")),
        }
        at = end + 2;
    }
    Ok(Found::Whole { used: at })
}

/// A request in one line, words with blanks between: so people type, and so fred says `HELLO`.
fn words(buffer: &[u8], args: &mut Vec<Range<usize>>) -> Result<Found, Malformed> {
    let window = &buffer[..buffer.len().min(LONGEST_LINE)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        let endless = window.len() == LONGEST_LINE;
        return if endless { Err(Malformed("a line to end")) } else { Ok(Found::More { need: buffer.len() + 1 }) };
    };
    let mut start = 0;
    for word in buffer[..=end].split(u8::is_ascii_whitespace) {
        args.extend((!word.is_empty()).then_some(start..start + word.len()));
        start += word.len() + 1;
    }
    Ok(Found::Whole { used: end + 1 })
}

/// The number in the line that begins with `kind` at `at`, and where the next line begins. `None`: not all there yet.
fn number(buffer: &[u8], at: usize, kind: u8, most: usize) -> Result<Option<(usize, usize)>, Malformed> {
    let what = if kind == b'*' { "'*' and the number of arguments" } else { "'$' and the length of an argument" };
    let Some((&first, line)) = buffer.get(at..).and_then(<[u8]>::split_first) else { return Ok(None) };
    if first != kind {
        return Err(Malformed(what));
    }
    let mut value = 0;
    for (digits, byte) in line.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits < MOST_DIGITS => value = 10 * value + usize::from(byte - b'0'),
            b'\r' if digits > 0 && value <= most => {
                return match line.get(digits + 1) {
                    Some(b'\n') => Ok(Some((value, at + digits + 3))),
                    Some(_) => Err(Malformed(what)),
                    None => Ok(None),
                };
            }
            _ => return Err(Malformed(what)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::resp;

    fn found(bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
        let mut at = Vec::new();
        match parse(bytes, &mut at) {
            Ok(Found::Whole { used }) => {
                let args = Args::new(bytes, &at);
                ((0..args.len()).map(|number| args.get(number).to_vec()).collect(), used)
            }
            other => panic!("{other:?}: {}", bytes.escape_ascii()),
        }
    }

    proptest! {
        #[test]
        fn a_request_is_found_whole_and_wherever_it_is_cut_more_is_asked_for(
            sent in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            next in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut bytes = Vec::new();
            resp::encode(&sent.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut bytes);
            let whole = bytes.len();
            for cut in 0..whole {
                match parse(&bytes[..cut], &mut Vec::new()) {
                    Ok(Found::More { need }) => prop_assert!(need > cut && need <= whole, "{cut} of {whole}: {need}"),
                    other => prop_assert!(false, "{cut} of {whole}: {other:?}"),
                }
            }
            bytes.extend(next);
            prop_assert_eq!(found(&bytes), (sent, whole));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'1'), Just(b'\r'),
            Just(b'\n'), any::<u8>()], 0..60))
        {
            let mut args = Vec::new();
            if let Ok(Found::Whole { used }) = parse(&bytes, &mut args) {
                prop_assert!(used <= bytes.len() && args.iter().all(|arg| arg.end <= used));
            }
        }
    }

    #[test]
    fn a_line_of_words_is_a_request() {
        assert_eq!(found(b"HELLO 3\r\nmore"), (vec![b"HELLO".to_vec(), b"3".to_vec()], 9));
        assert_eq!(found(b"  a \t b\n"), (vec![b"a".to_vec(), b"b".to_vec()], 8));
        assert_eq!(found(b"\r\n"), (Vec::new(), 2));
        assert_eq!(parse(b"PING\r", &mut Vec::new()), Ok(Found::More { need: 6 }));
        assert!(parse(&[b'x'; 64 * 1024], &mut Vec::new()).is_err());
    }

    #[test]
    fn what_is_no_request_is_said() {
        for bytes in [
            "*x\r\n",
            "*\r\n",
            "*1\n",
            "*1\rx",
            "*1048577\r\n",
            "*99999999999\r\n",
            "*1\r\n:3\r\n",
            "*1\r\n$3\r\nabcd\r\n",
            "*1\r\n$536870913\r\n",
            "*-1\r\n",
        ] {
            assert!(parse(bytes.as_bytes(), &mut Vec::new()).is_err(), "{}", bytes.escape_debug());
        }
    }
}
