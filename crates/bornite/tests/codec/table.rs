//! Compressed tables and files: the same bytes back, or an error.

use std::fmt::Write;
use std::sync::OnceLock;

use bornite::Fit;
use bornite::data::{CsvOptions, Table};
use bornite::learn::Control;
use bornite::model::{
    CompressOptions, Compressed, Method, Model, ModelError, ModelOptions, compress_file,
};

/// Mixed columns with holes, in which little depends on anything.
pub(crate) fn people(rows: u32) -> String {
    let mut text = "city,age,height,flag\n".to_owned();
    let mut state = 7_u64;
    for n in 0..rows {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let r = (state >> 33) as u32;
        let city = ["Bonn", "Essen", "Köln", ""][(r % 4) as usize];
        let age = if n % 17 == 0 { "NA".to_owned() } else { (20 + r / 4 % 60).to_string() };
        let height = f64::from(r / 240 % 40_000) / 100.0;
        writeln!(
            text,
            "{city},{age},{height:.2},{}",
            if r.is_multiple_of(3) { "yes" } else { "no" }
        )
        .unwrap();
    }
    text
}

pub(crate) fn table(text: &str) -> Table {
    Table::from_csv_bytes(text.as_bytes(), "people.csv", &CsvOptions::default()).unwrap()
}

pub(crate) fn fit(text: &str) -> Model {
    let options = ModelOptions {
        width: Some(2),
        epochs: Some(1),
        functions: Some(4),
        as_is: true,
        ..ModelOptions::default()
    };
    Fit::with(options).run(&table(text)).unwrap()
}

pub(crate) fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| fit(&people(200)))
}

/// Compresses with segments of so many bytes.
pub(crate) fn compress_by(
    segment_bytes: Option<usize>,
    content: &[u8],
    model: Option<&Model>,
) -> (Vec<u8>, Compressed) {
    let options = CompressOptions {
        epochs: Some(1),
        width: Some(2),
        segment_bytes,
        ..CompressOptions::default()
    };
    let mut bytes = Vec::new();
    let go_on = &mut |_: &_| Control::Continue;
    let done = compress_file(content, &mut bytes, "file", model, &options, go_on).unwrap();
    assert_eq!((done.bytes_in, done.bytes_out), (content.len() as u64, bytes.len() as u64));
    (bytes, done)
}

pub(crate) fn compress(content: &[u8], model: Option<&Model>) -> (Vec<u8>, Compressed) {
    compress_by(None, content, model)
}

pub(crate) fn decompress(bytes: &[u8], model: Option<&Model>) -> Result<Vec<u8>, ModelError> {
    let mut content = Vec::new();
    let sizes = bornite::model::decompress_file(bytes, &mut content, model)?;
    assert_eq!(sizes, (bytes.len() as u64, content.len() as u64));
    Ok(content)
}

#[test]
fn tables_come_back_with_all_that_they_hold() {
    let text = people(500) + "Paris,17000,-0.0,maybe\n";
    let table = table(&text);
    let bytes = model().compress(&table).unwrap();
    let back = model().decompress(&bytes).unwrap();
    assert_eq!(back, table);
    assert_eq!(back.to_csv(), text.as_bytes());
    let image = Table::from_rows(&["a", "b"], &[1.0, 2.5, f64::NAN, 4.0]).unwrap();
    let image = image.with_image([1, 2, 1]).unwrap();
    let back = model().decompress(&model().compress(&image).unwrap()).unwrap();
    assert_eq!((back.image(), back.to_csv()), (image.image(), image.to_csv()));
}

#[test]
fn any_file_comes_back_byte_for_byte() {
    let mut npy = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    npy.extend(
        format!("{:69}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }").bytes(),
    );
    let whole = npy.clone();
    for x in [1.5_f32, -0.0, f32::NAN, 1e-40, 3.25, 7.0] {
        npy.extend(x.to_le_bytes());
    }
    let mut odd_nan = whole;
    odd_nan.extend([0x01, 0x00, 0xc0, 0x7f].repeat(6));
    let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2];
    idx.extend([0, 255, 3, 4, 5, 6, 7, 8]);
    let files: [&[u8]; 12] = [
        people(300).as_bytes(),
        people(40).replace('\n', "\r\n").as_bytes(),
        b"a,b\n\"quoted\",1\nx,2\n",
        b"a;b\n1;2\n3;4",
        b"a,b\n1,2\n\n3,4\n",
        b"",
        b"no table\0at all",
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04",
        &npy,
        &odd_nan,
        &idx,
    ]
    .map(|file| -> &[u8] { Vec::leak(file.to_vec()) });
    for file in files {
        for given in [None, Some(model())] {
            let (bytes, done) = compress(file, given);
            assert!(bytes.len() <= file.len() + file.len() / 100 + 1024);
            let back = decompress(&bytes, given).unwrap();
            assert!(back == file, "{:?}: {:?}", done.method, String::from_utf8_lossy(file));
        }
    }
}

/// A large table of few values, which even one epoch makes smaller than zstd does.
pub(crate) fn few_values() -> String {
    let mut text = "a,b,c\n".to_owned();
    let mut state = 3_u64;
    for _ in 0..6000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let r = (state >> 33) as u32;
        writeln!(text, "{},{},{}.{}", r % 3, r / 3 % 5, r / 15 % 7, r / 105 % 10).unwrap();
    }
    text
}

#[test]
fn a_file_with_a_model_of_its_own_needs_nothing_else() {
    let text = few_values();
    let (bytes, done) = compress(text.as_bytes(), None);
    assert!(matches!(done.method, Method::Fitted { .. }), "{done:?}");
    assert_eq!(compress(text.as_bytes(), None), (bytes.clone(), done), "the same bytes again");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let back = pool.install(|| decompress(&bytes, None).unwrap());
        assert!(back == text.as_bytes());
    }
    // 3 · 5 · 70 values in equal shares, and 1000 bytes for all else.
    let least = 6000.0 * (3.0_f64 * 5.0 * 70.0).log2() / 8.0;
    assert!((bytes.len() as f64) < 1.02 * least + 1200.0, "{}", bytes.len());
}

#[test]
fn another_model_or_none_is_refused() {
    let bytes = compress(people(300).as_bytes(), Some(model())).0;
    let message = |model| decompress(&bytes, model).unwrap_err().to_string();
    assert!(message(None).contains("give the model that compressed it"), "{}", message(None));
    let other = fit(&people(150));
    assert!(message(Some(&other)).contains("was made with the model"), "{}", message(Some(&other)));
    let mut later = bytes.clone();
    later[8] = 9;
    let later = decompress(&later, Some(model())).unwrap_err().to_string();
    assert!(later.contains("version 9"), "{later}");
}

#[test]
fn files_and_tables_are_not_taken_for_each_other() {
    let text = people(300);
    let (file, _) = compress(text.as_bytes(), Some(model()));
    let message = model().decompress(&file).unwrap_err().to_string();
    assert!(message.contains("decompress it as a file"), "{message}");
    let bytes = model().compress(&table(&text)).unwrap();
    let message = decompress(&bytes, Some(model())).unwrap_err().to_string();
    assert!(message.contains("decompress it as a table"), "{message}");
}
