//! Commands, written into a buffer.

/// Twenty digits, and the line's end.
const HEAD_BYTES: usize = 22;

/// Appends a command.
pub fn encode(args: &[&[u8]], out: &mut Vec<u8>) {
    begin(args.len(), out);
    for arg in args {
        put(arg, out);
    }
}

/// Appends the head of a command of `args` arguments; they must follow through [`put`].
pub fn begin(args: usize, out: &mut Vec<u8>) {
    out.push(b'*');
    number(args, out);
}

/// Appends an argument.
pub fn put(arg: &[u8], out: &mut Vec<u8>) {
    length(arg.len(), out);
    out.extend_from_slice(arg);
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of an argument of `len` bytes; the bytes and `\r\n` must follow.
pub fn length(len: usize, out: &mut Vec<u8>) {
    if let 10..100 = len {
        // Most keys and many values.
        out.extend_from_slice(&[b'$', b'0' + (len / 10) as u8, b'0' + (len % 10) as u8, b'\r', b'\n']);
    } else {
        out.push(b'$');
        number(len, out);
    }
}

/// Appends an argument whose length is known here, at least 10 and below 100, in one go.
pub fn put_array<const LEN: usize>(arg: &[u8; LEN], out: &mut Vec<u8>) {
    const { assert!(LEN >= 10 && LEN < 100, "a length of two digits") };
    let mut whole = [0; 5 + 99 + 2];
    whole[..5].copy_from_slice(&[b'$', b'0' + (LEN / 10) as u8, b'0' + (LEN % 10) as u8, b'\r', b'\n']);
    whole[5..5 + LEN].copy_from_slice(arg);
    whole[5 + LEN..7 + LEN].copy_from_slice(b"\r\n");
    out.extend_from_slice(&whole[..7 + LEN]);
}

/// Appends an argument that `write` appends, however long it gets: most keys are, so that nobody need measure them before.
pub fn put_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let head = out.len();
    out.extend_from_slice(b"$00\r\n");
    let begin = out.len();
    write(out);
    let len = out.len() - begin;
    if let 10..100 = len {
        out[head + 1] += (len / 10) as u8;
        out[head + 2] += (len % 10) as u8;
    } else {
        let mut text = [0; HEAD_BYTES];
        out.splice(head + 1..begin, number_line(len, &mut text).iter().copied());
    }
    out.extend_from_slice(b"\r\n");
}

fn number(number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(number_line(number, &mut [0; HEAD_BYTES]));
}

/// The digits of a number, and the line's end.
fn number_line(number: usize, text: &mut [u8; HEAD_BYTES]) -> &[u8] {
    let mut at = text.len() - 2;
    text[at..].copy_from_slice(b"\r\n");
    let mut rest = number;
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &text[at..];
        }
    }
}
