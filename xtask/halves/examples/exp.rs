fn main(){ let a:Vec<String>=std::env::args().collect(); let b=std::fs::read(&a[1]).unwrap(); let m=module_halves::Module::read(&b).unwrap();
 if a[2]=="trace" { std::fs::write(&a[3], m.traced().unwrap()).unwrap(); return }
 let sets:Vec<std::collections::BTreeSet<u32>>=std::fs::read_to_string(&a[2]).unwrap().lines().map(|l| l.split(',').filter(|x|!x.is_empty()).map(|x|x.parse().unwrap()).collect()).collect();
 for (i,p) in m.split(&sets).unwrap().into_iter().enumerate(){ std::fs::write(format!("{}/{}.wasm",a[3],i),p).unwrap(); } }
